/** Length and parts of a text, counted in code points. */
import { defineNode, values } from '../../node/define-node.ts'
import { string, wideInt } from '../../node/input-kinds.ts'
import { pyLength, pySlice } from '../../python/code-points.ts'
import { costOfTexts } from '../../python/text-limit.ts'

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
