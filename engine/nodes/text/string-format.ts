import { values } from '../../node/define-node.ts'
import { autogrow } from '../../node/dynamic-kinds.ts'
import { defineDynamicNode } from '../../node/dynamic-node.ts'
import { anything, string } from '../../node/input-kinds.ts'
import { formatTemplate } from '../../python/format/format-template.ts'
import { toPyValue } from '../../python/python-value.ts'
import type { Value } from '../../values/value.ts'
import { LETTERS } from '../values/letters.ts'

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
  run({ values: given, f_string }) {
    const named = Object.entries<Value>(given).map(([name, value]) => [name, toPyValue(value)])
    return values(formatTemplate(f_string, Object.fromEntries(named)))
  },
})
