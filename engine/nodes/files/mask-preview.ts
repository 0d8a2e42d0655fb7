import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { mask } from '../../node/input-kinds.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { previewImages } from './previews.ts'
import { hidden, madeFromTexts } from './saving.ts'

/** A mask as a picture: the same value in all three colours. */
function toGrey({ shape, data }: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const [height, width] = shape.slice(-2)
  const grey = allocate([data.length / Math.max(1, height * width), height, width, 3])
  inBlocks(data.length, checkpoint, (from, to) => {
    for (let i = from; i < to; i++) grey.data.fill(data[i], i * 3, i * 3 + 3)
  })
  return grey
}

export const maskPreview = defineNode({
  classType: 'MaskPreview',
  displayName: 'Preview Mask',
  category: 'image/mask',
  description: 'Shows a mask while the workflow runs, without making it an output.',
  style: 'schema',
  required: { mask: mask({}) },
  hidden,
  outputs: [{ type: 'MASK', name: 'mask' }],
  isOutputNode: true,
  cost: ({ mask: tensor }) => costOf(tensor.data.length * 3),
  async run({ mask: tensor }, context) {
    const images = await previewImages(toGrey(tensor, context), { texts: madeFromTexts(context) }, context)
    return { outputs: [tensor], report: { images, animated: [{ kind: 'value', value: false }] } }
  },
})
