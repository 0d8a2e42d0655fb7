import { defineNode, values } from '../../node/define-node.ts'
import { string } from '../../node/input-kinds.ts'
import { refuseLongText } from '../../python/text-limit.ts'

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
