/** Not, and, or: by Python's truth, where zero, nothing and everything empty is false. */
import { defineNode, values } from '../../node/define-node.ts'
import { autogrow } from '../../node/dynamic-kinds.ts'
import { defineDynamicNode } from '../../node/dynamic-node.ts'
import { anything } from '../../node/input-kinds.ts'
import { pyTruth, toPyValue } from '../../python/python-value.ts'
import type { Value } from '../../values/value.ts'

const isTrue = (value: Value) => pyTruth(toPyValue(value))

export const notNode = defineNode({
  classType: 'ComfyNotNode',
  displayName: 'Not',
  category: 'utilities/logic',
  description: 'True when the value is false, zero, empty or nothing.',
  style: 'schema',
  required: { value: anything({}) },
  outputs: [{ type: 'BOOLEAN' }],
  cost: 'inline',
  run: ({ value }) => values(!isTrue(value)),
})

const operands = autogrow({ member: 'value', kind: anything({}), naming: { prefix: 'value', max: 10 }, min: 1 })

export const andNode = defineDynamicNode({
  classType: 'ComfyAndNode',
  displayName: 'And',
  category: 'utilities/logic',
  description: 'True when every value counts as true.',
  style: 'schema',
  required: { values: operands },
  outputs: [{ type: 'BOOLEAN' }],
  cost: 'inline',
  run: (inputs) => values(Object.values(inputs.values).every(isTrue)),
})

export const orNode = defineDynamicNode({
  classType: 'ComfyOrNode',
  displayName: 'Or',
  category: 'utilities/logic',
  description: 'True when at least one value counts as true.',
  style: 'schema',
  required: { values: operands },
  outputs: [{ type: 'BOOLEAN' }],
  cost: 'inline',
  run: (inputs) => values(Object.values(inputs.values).some(isTrue)),
})
