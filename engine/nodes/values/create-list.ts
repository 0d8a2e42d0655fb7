import { values } from '../../node/define-node.ts'
import { autogrow, MATCHED_OUTPUT, matchType } from '../../node/dynamic-kinds.ts'
import { defineDynamicListNode } from '../../node/dynamic-node.ts'
import { refuseLongList } from '../../values/value-weight.ts'

/** One list of everything that its inputs bring, in the order of their names. */
export const createList = defineDynamicListNode({
  classType: 'CreateList',
  displayName: 'Create List',
  category: 'utilities',
  description: 'Joins its inputs into one list; nodes after it run once per element.',
  style: 'schema',
  required: {
    inputs: autogrow({
      member: 'input',
      kind: matchType({ id: 'type', allowedTypes: '*' }),
      naming: { prefix: 'input', max: 10 },
      min: 1,
    }),
  },
  outputs: [{ type: MATCHED_OUTPUT, name: 'list', isList: true }],
  outputMatchTypes: ['type'],
  cost: 'inline',
  run({ inputs }) {
    const lists = Object.values(inputs)
    refuseLongList(lists.reduce((sum, list) => sum + list.length, 0))
    return values(lists.flat())
  },
})
