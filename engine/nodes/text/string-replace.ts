import { defineNode, values } from '../../node/define-node.ts'
import { string } from '../../node/input-kinds.ts'
import { pyReplace } from '../../python/replace.ts'
import { costOfTexts } from '../../python/text-limit.ts'

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
