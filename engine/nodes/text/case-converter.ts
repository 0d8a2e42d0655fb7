import { defineNode, values } from '../../node/define-node.ts'
import { combo, string } from '../../node/input-kinds.ts'
import { pyCapitalize, pyLower, pyTitle, pyUpper } from '../../python/text-case.ts'
import { costOfTexts } from '../../python/text-limit.ts'

const MODES = ['UPPERCASE', 'lowercase', 'Capitalize', 'Title Case'] as const

const CONVERT: Readonly<Record<(typeof MODES)[number], (text: string) => string>> = {
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
  required: { string: string({ multiline: true }), mode: combo(MODES) },
  outputs: [{ type: 'STRING' }],
  cost: costOfTexts,
  run: ({ string, mode }) => values(CONVERT[mode](string)),
})
