/** Classes of ComfyUI's test pack that the engine's own tests and the recordings of ComfyUI both need. */
import { defineNode, values } from '../../node/define-node.ts'
import { anything, boolean, image, mask } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { Blocker } from '../../values/value.ts'

export const testFacts = { category: 'test', description: 'For tests.', style: 'classic' } as const

export const testSyncError = defineNode({
  ...testFacts,
  classType: 'TestSyncError',
  displayName: 'TestSyncError',
  required: { value: anything() },
  outputs: [{ type: '*' }],
  cost: 'compute',
  run() {
    throw new NodeError('RuntimeError', 'Intentional sync execution error for testing')
  },
})

export const testExecutionBlocker = defineNode({
  ...testFacts,
  classType: 'TestExecutionBlocker',
  displayName: 'TestExecutionBlocker',
  required: { input: anything(), block: boolean(), verbose: boolean() },
  outputs: [{ type: '*' }],
  cost: 'inline',
  run: ({ input, block, verbose }) =>
    block ? { outputs: new Blocker(verbose ? 'Blocked Execution' : null) } : values(input),
})

export const testLazyMixImages = defineNode({
  ...testFacts,
  classType: 'TestLazyMixImages',
  displayName: 'TestLazyMixImages',
  required: { image1: image({ lazy: true }), image2: image({ lazy: true }), mask: mask() },
  outputs: [{ type: 'IMAGE' }],
  cost: 'inline',
  askLazy({ mask: tensor }) {
    if (tensor === undefined) return []
    const wanted = []
    if (tensor.data.some((value) => value !== 1)) wanted.push('image1')
    if (tensor.data.some((value) => value !== 0)) wanted.push('image2')
    return wanted
  },
  run: ({ image1, image2, mask: tensor }) => values(tensor.data[0] === 1 ? image2 : image1),
})
