import { defineNode, values } from '../../node/define-node.ts'
import { wideInt } from '../../node/input-kinds.ts'

export const seedNode = defineNode({
  classType: 'SeedNode',
  displayName: 'Seed',
  category: 'utilities',
  description: 'A seed that several nodes can share.',
  style: 'schema',
  required: { seed: wideInt({ min: 0, max: 2n ** 63n - 1n, control_after_generate: 'fixed' }) },
  outputs: [{ type: 'INT', name: 'seed' }],
  cost: 'inline',
  run: ({ seed }) => values(seed),
})
