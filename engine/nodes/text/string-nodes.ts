/**
 * Python's string methods as nodes. Lengths and positions are counted in code points; where case is ignored, both texts are
 * compared in lower case.
 */
import { pythonStrip } from '../../../lib/python/text.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { autogrow, defineDynamicNode, LETTERS } from '../../node/dynamic-node.ts'
import { anything, combo, int, ofType, string, truth, wideInt } from '../../node/input-kinds.ts'
import { formatTemplate } from '../../python/format/format-template.ts'
import { dumpPyJson, readPyJson } from '../../python/python-json.ts'
import { pyStr, toPyValue } from '../../python/python-value.ts'
import { costOfTexts, refuseLongText } from '../../python/text-limit.ts'
import {
  pyCapitalize,
  pyContains,
  pyLength,
  pyLower,
  pyReplace,
  pySlice,
  pyStripLeft,
  pyStripRight,
  pyTitle,
  pyUpper,
} from '../../python/text-methods.ts'
import type { Value } from '../../values/value.ts'

// JSON as text: written from a dictionary or a list (non-ASCII characters as they are), and one key read from it.

const indent = int({ default: 2, min: 0, max: 8 })

function toText(value: Value, spaces: number): string {
  const text = dumpPyJson(toPyValue(value), spaces === 0 ? null : spaces)
  refuseLongText(text.length)
  return text
}

// How large the value is can only be found by walking it, which is the work itself.
const cost = 'compute'

export const convertDictionaryToString = defineNode({
  classType: 'ConvertDictionaryToString',
  displayName: 'Convert Dictionary to String',
  category: 'text',
  description: 'Writes a dictionary as JSON; an indent of 0 keeps it on one line.',
  style: 'schema',
  required: { dictionary: ofType('DICT'), indent },
  outputs: [{ type: 'STRING' }],
  cost,
  run: ({ dictionary, indent }) => values(toText(dictionary, indent)),
})

export const convertArrayToString = defineNode({
  classType: 'ConvertArrayToString',
  displayName: 'Convert Array to String',
  category: 'text',
  description: 'Writes a list as JSON; an indent of 0 keeps it on one line.',
  style: 'schema',
  required: { array: ofType('ARRAY'), indent },
  outputs: [{ type: 'STRING' }],
  cost,
  run: ({ array, indent }) => values(toText(array, indent)),
})

function extract(text: string, key: string): string {
  const data = readPyJson(text)
  // A list, a number or no JSON at all holds no keys.
  const value = data instanceof Map ? data.get(key) : undefined
  return value === undefined || value === null ? '' : pyStr(value)
}

export const jsonExtractString = defineNode({
  classType: 'JsonExtractString',
  displayName: 'Extract Text from JSON',
  category: 'text',
  description: 'Reads one top-level key of a JSON object as text; empty when there is none.',
  style: 'schema',
  required: { json_string: string({ multiline: true }), key: string({ multiline: false }) },
  outputs: [{ type: 'STRING' }],
  cost: costOfTexts,
  run: ({ json_string, key }) => values(extract(json_string, key)),
})

export const stringConcatenate = defineNode({
  classType: 'StringConcatenate',
  displayName: 'Concatenate Text',
  category: 'text',
  description: 'Joins two texts with a third between them.',
  style: 'schema',
  required: {
    string_a: string({ multiline: true }),
    string_b: string({ multiline: true }),
    delimiter: string({ default: '', multiline: false }),
  },
  outputs: [{ type: 'STRING' }],
  cost: 'inline',
  run({ string_a: a, string_b: b, delimiter }) {
    refuseLongText(a.length + delimiter.length + b.length)
    return values(a + delimiter + b)
  },
})

export const stringSubstring = defineNode({
  classType: 'StringSubstring',
  displayName: 'Substring',
  category: 'text',
  description: 'Cuts a piece out of a text, from one position up to another. Negative positions count from the end.',
  style: 'schema',
  required: { string: string({ multiline: true }), start: wideInt({}), end: wideInt({}) },
  outputs: [{ type: 'STRING' }],
  cost: costOfTexts,
  run: ({ string, start, end }) => values(pySlice(string, start, end)),
})

export const stringLength = defineNode({
  classType: 'StringLength',
  displayName: 'Text Length',
  category: 'text',
  description: 'Counts the characters of a text.',
  style: 'schema',
  required: { string: string({ multiline: true }) },
  outputs: [{ type: 'INT', name: 'length' }],
  cost: costOfTexts,
  run: ({ string }) => values(pyLength(string)),
})

const CASE_MODES = ['UPPERCASE', 'lowercase', 'Capitalize', 'Title Case'] as const

const CONVERT: Readonly<Record<(typeof CASE_MODES)[number], (text: string) => string>> = {
  UPPERCASE: pyUpper,
  lowercase: pyLower,
  Capitalize: pyCapitalize,
  'Title Case': pyTitle,
}

export const caseConverter = defineNode({
  classType: 'CaseConverter',
  displayName: 'Convert Text Case',
  category: 'text',
  description: 'Changes the letters of a text to upper, lower, sentence or title case.',
  style: 'schema',
  required: { string: string({ multiline: true }), mode: combo(CASE_MODES) },
  outputs: [{ type: 'STRING' }],
  cost: costOfTexts,
  run: ({ string, mode }) => values(CONVERT[mode](string)),
})

const TRIM_MODES = ['Both', 'Left', 'Right'] as const

const TRIM: Readonly<Record<(typeof TRIM_MODES)[number], (text: string) => string>> = {
  Both: pythonStrip,
  Left: pyStripLeft,
  Right: pyStripRight,
}

export const stringTrim = defineNode({
  classType: 'StringTrim',
  displayName: 'Trim Text',
  category: 'text',
  description: 'Removes white space at one end of a text or at both.',
  style: 'schema',
  required: { string: string({ multiline: true }), mode: combo(TRIM_MODES) },
  outputs: [{ type: 'STRING' }],
  cost: costOfTexts,
  run: ({ string, mode }) => values(TRIM[mode](string)),
})

export const stringReplace = defineNode({
  classType: 'StringReplace',
  displayName: 'Replace Text',
  category: 'text',
  description: 'Replaces every occurrence of one text by another, character for character.',
  style: 'schema',
  required: {
    string: string({ multiline: true }),
    find: string({ multiline: true }),
    replace: string({ multiline: true }),
  },
  outputs: [{ type: 'STRING' }],
  cost: costOfTexts,
  run: ({ string, find, replace }) => values(pyReplace(string, find, replace)),
})

const fold = (text: string, isCaseSensitive: boolean) => (isCaseSensitive ? text : pyLower(text))
const caseSensitive = truth({ advanced: true, default: true })

export const stringContains = defineNode({
  classType: 'StringContains',
  displayName: 'Contains Text',
  category: 'text',
  description: 'Tells whether a text occurs inside another.',
  style: 'schema',
  required: {
    string: string({ multiline: true }),
    substring: string({ multiline: true }),
    case_sensitive: caseSensitive,
  },
  outputs: [{ type: 'BOOLEAN', name: 'contains' }],
  cost: costOfTexts,
  run: ({ string, substring, case_sensitive }) =>
    values(pyContains(fold(string, case_sensitive), fold(substring, case_sensitive))),
})

const COMPARE_MODES = ['Starts With', 'Ends With', 'Equal'] as const

const COMPARE: Readonly<Record<(typeof COMPARE_MODES)[number], (a: string, b: string) => boolean>> = {
  'Starts With': (a, b) => a.startsWith(b),
  'Ends With': (a, b) => a.endsWith(b),
  Equal: (a, b) => a === b,
}

export const stringCompare = defineNode({
  classType: 'StringCompare',
  displayName: 'Compare Text',
  category: 'text',
  description: 'Tells whether a text begins with, ends with or equals another.',
  style: 'schema',
  required: {
    string_a: string({ multiline: true }),
    string_b: string({ multiline: true }),
    mode: combo(COMPARE_MODES),
    case_sensitive: caseSensitive,
  },
  outputs: [{ type: 'BOOLEAN' }],
  cost: costOfTexts,
  run: ({ string_a, string_b, mode, case_sensitive }) =>
    values(COMPARE[mode](fold(string_a, case_sensitive), fold(string_b, case_sensitive))),
})

export const stringFormat = defineDynamicNode({
  classType: 'StringFormat',
  displayName: 'Format Text',
  category: 'text',
  description: 'Fills values into a text: {a} and so on, with the format options of Python, such as {a:.2f}.',
  style: 'schema',
  required: {
    values: autogrow({ member: 'value', kind: anything({}), naming: { names: LETTERS }, min: 0 }),
    f_string: string({ default: '{a}', multiline: true }),
  },
  outputs: [{ type: 'STRING' }],
  // A value can be of any size, and a width can ask for a long text.
  cost: 'compute',
  run({ values: given, f_string }, { checkpoint }) {
    const named = Object.entries<Value>(given).map(([name, value]) => [name, toPyValue(value)])
    return values(formatTemplate(f_string, Object.fromEntries(named), checkpoint))
  },
})
