import { autogrow } from '../../node/dynamic-kinds.ts'
import { defineDynamicNode } from '../../node/dynamic-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { mask } from '../../node/input-kinds.ts'
import { concatenate } from '../../tensor/batch.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { asMaskBatch } from './mask-batch.ts'

export const batchMasks = defineDynamicNode({
  classType: 'BatchMasksNode',
  displayName: 'Batch Masks',
  category: 'image/mask',
  description: 'Joins masks into one batch, all in the size of the first.',
  style: 'schema',
  required: {
    masks: autogrow({ member: 'mask', kind: mask({}), naming: { prefix: 'mask', max: 50 }, min: 1 }),
  },
  outputs: [{ type: 'MASK' }],
  cost: ({ masks }) => costOf(Object.values(masks).reduce((sum, tensor) => sum + tensor.data.length, 0)),
  run({ masks }, context) {
    const batches = Object.values(masks).map(asMaskBatch)
    const [, height, width] = batches[0].shape
    const fitted = batches.map((batch) =>
      upscale(batch, { width, height, method: 'bilinear', crop: 'center' }, context),
    )
    return { outputs: [concatenate(fitted, context)] }
  },
})
