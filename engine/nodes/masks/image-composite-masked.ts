import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { boolean, image, mask } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { copyInto, memberSize } from '../../tensor/batch.ts'
import { alignChannels } from '../../tensor/compose/align-channels.ts'
import { pastePicture } from '../../tensor/compose/paste.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { asMaskBatch } from './mask-batch.ts'
import { offset } from './mask-kinds.ts'

function stretch(tensor: Tensor, [height, width]: readonly number[], work: PixelWork): Tensor {
  return upscale(tensor, { width, height, method: 'bilinear', crop: 'disabled' }, work)
}

/** Member `index` of a batch that repeats from its start. */
function repeated(tensor: Tensor, index: number) {
  const [batch, height, width] = tensor.shape
  return { data: tensor.data, start: (index % batch) * memberSize(tensor), width, height }
}

export const imageCompositeMasked = defineNode({
  classType: 'ImageCompositeMasked',
  displayName: 'Image Composite Masked',
  category: 'image/compositing',
  description: 'Lays one image over another at a place, where a mask allows it.',
  style: 'schema',
  required: {
    destination: image({}),
    source: image({}),
    x: offset(),
    y: offset(),
    resize_source: boolean({ default: false }),
  },
  optional: { mask: mask({}) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ destination, source }) => costOf(destination.data.length + source.data.length),
  run({ destination, source, x, y, resize_source: isResized, mask: given }, context) {
    const aligned = alignChannels(destination, source, context)
    const [batch, height, width, channels] = destination.shape
    if (aligned.shape[3] !== channels) {
      const sizes = `a (${channels}) must match the size of tensor b (${aligned.shape[3]})`
      throw new NodeError('RuntimeError', `The size of tensor ${sizes} at non-singleton dimension 1`)
    }
    const above = isResized ? stretch(aligned, [height, width], context) : aligned
    const weights = given === undefined ? null : stretch(asMaskBatch(given), above.shape.slice(1, 3), context)
    const result = context.allocate(destination.shape)
    copyInto(result.data, 0, destination.data, context.checkpoint)
    for (let index = 0; index < batch; index++) {
      const maskPart = weights === null ? null : repeated(weights, index)
      const paste = { target: repeated(result, index), source: repeated(above, index), mask: maskPart, channels, x, y }
      pastePicture(paste, context)
    }
    return { outputs: [result] }
  },
})
