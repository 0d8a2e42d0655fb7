import { pythonStrip } from '../../../lib/python/text.ts'
import { defineNode, values } from '../../node/define-node.ts'
import { combo, string } from '../../node/input-kinds.ts'
import { costOfTexts } from '../../python/text-limit.ts'
import { pyStripLeft, pyStripRight } from '../../python/trim.ts'

const MODES = ['Both', 'Left', 'Right'] as const

const TRIM: Readonly<Record<(typeof MODES)[number], (text: string) => string>> = {
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
  required: { string: string({ multiline: true }), mode: combo(MODES) },
  outputs: [{ type: 'STRING' }],
  cost: costOfTexts,
  run: ({ string, mode }) => values(TRIM[mode](string)),
})
