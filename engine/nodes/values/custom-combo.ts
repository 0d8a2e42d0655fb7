import { defineNode, values } from '../../node/define-node.ts'
import type { InputKind } from '../../node/input-kinds.ts'
import type { Value } from '../../values/value.ts'

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
