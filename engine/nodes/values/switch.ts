import { values } from '../../node/define-node.ts'
import { MATCHED_OUTPUT, matchType } from '../../node/dynamic-kinds.ts'
import { defineDynamicNode } from '../../node/dynamic-node.ts'
import { truth } from '../../node/value-kinds.ts'

const branch = matchType({ id: 'switch', allowedTypes: '*' }, { lazy: true })

/** Only the chosen branch is evaluated: the other may be expensive, or fail. */
export const switchNode = defineDynamicNode({
  classType: 'ComfySwitchNode',
  displayName: 'If/Else Switch',
  category: 'utilities/logic',
  description: 'Hands on one of two inputs and runs only what that one needs.',
  style: 'schema',
  experimental: true,
  required: { switch: truth(), on_false: branch, on_true: branch },
  outputs: [{ type: MATCHED_OUTPUT, name: 'output' }],
  outputMatchTypes: ['switch'],
  cost: 'inline',
  askLazy({ switch: isOn, on_true, on_false }) {
    const [name, value] = isOn ? (['on_true', on_true] as const) : (['on_false', on_false] as const)
    // Absent and null both mean: not evaluated yet.
    return value === undefined || value === null ? [name] : []
  },
  run: ({ switch: isOn, on_true, on_false }) => values((isOn ? on_true : on_false) ?? null),
})
