/** Truth, choices and lists. Truth is Python's: zero, nothing and everything empty is false. */
import { defineNode, values } from '../../node/define-node.ts'
import { autogrow, MATCHED_OUTPUT, matchType } from '../../node/dynamic-kinds.ts'
import { defineDynamicListNode, defineDynamicNode } from '../../node/dynamic-node.ts'
import { anything, type InputKind, truth } from '../../node/input-kinds.ts'
import { refuseLongList } from '../../node/node-error.ts'
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

/** The list of choices lives in the editor, so any value is accepted. */
const choice: InputKind<Value> = { spec: ['COMBO', { multiselect: false, options: [] }], read: (value) => value }

export const customCombo = defineNode({
  classType: 'CustomCombo',
  displayName: 'Custom Combo',
  category: 'utilities',
  description: 'A choice from a list that is written in the editor: the choice and its place in the list.',
  style: 'schema',
  experimental: true,
  required: { choice },
  outputs: [{ type: 'STRING' }, { type: 'INT', name: 'INDEX' }],
  selfChecked: ['choice'],
  fileInputs: [],
  acceptsAllInputs: true,
  cost: 'inline',
  run(inputs) {
    // The editor sends the index as an input of its own, which the class does not declare.
    const { index = 0 } = inputs as { readonly index?: Value }
    return values(inputs.choice, index)
  },
})

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
