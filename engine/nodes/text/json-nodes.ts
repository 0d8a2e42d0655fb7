/** JSON as text: written from a dictionary or a list (non-ASCII characters as they are), and one key read from it. */
import { defineNode, values } from '../../node/define-node.ts'
import { int, ofType, string } from '../../node/input-kinds.ts'
import { dumpPyJson, readPyJson } from '../../python/python-json.ts'
import { pyStr, toPyValue } from '../../python/python-value.ts'
import { costOfTexts, refuseLongText } from '../../python/text-limit.ts'
import type { Value } from '../../values/value.ts'

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
