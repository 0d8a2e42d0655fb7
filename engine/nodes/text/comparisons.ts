/** Whether one text is in another, or equal to it. Without regard to case means: both in lower case. */
import { defineNode, values } from '../../node/define-node.ts'
import { combo, string } from '../../node/input-kinds.ts'
import { truth } from '../../node/value-kinds.ts'
import { pyLower } from '../../python/text-case.ts'
import { costOfTexts } from '../../python/text-limit.ts'

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
    values(fold(string, case_sensitive).includes(fold(substring, case_sensitive))),
})

const MODES = ['Starts With', 'Ends With', 'Equal'] as const

const COMPARE: Readonly<Record<(typeof MODES)[number], (a: string, b: string) => boolean>> = {
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
    mode: combo(MODES),
    case_sensitive: caseSensitive,
  },
  outputs: [{ type: 'BOOLEAN' }],
  cost: costOfTexts,
  run: ({ string_a, string_b, mode, case_sensitive }) =>
    values(COMPARE[mode](fold(string_a, case_sensitive), fold(string_b, case_sensitive))),
})
