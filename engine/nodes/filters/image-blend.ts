/** One image blended over another; the second is brought into the size and the channels of the first. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { combo, float, image } from '../../node/input-kinds.ts'
import { sizeMismatch } from '../../tensor/broadcast.ts'
import { alignChannels } from '../../tensor/channels.ts'
import { BLEND_MODES, toBlendJob } from '../../tensor/compose/blend.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { runRows } from '../../tensor/rows/run-rows.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'

/** The second image in the shape of the first; only its batch may be another. */
function fitToFirst(first: Tensor, second: Tensor, work: PixelWork): Tensor {
  const aligned = alignChannels(first, second, work)
  const [, height, width] = first.shape
  const isSame = first.shape.every((size, axis) => size === aligned.shape[axis])
  return isSame ? aligned : upscale(aligned, { width, height, method: 'bicubic', crop: 'center' }, work)
}

/** Batches of different sizes meet only when one of them is a single image. */
function commonBatch(first: Tensor, second: Tensor): number {
  for (const axis of [0, 3]) {
    const [a, b] = [first.shape[axis], second.shape[axis]]
    if (a === b || (axis === 0 && (a === 1 || b === 1))) continue
    throw sizeMismatch(a, b, axis)
  }
  return Math.max(first.shape[0], second.shape[0])
}

export const imageBlend = defineNode({
  classType: 'ImageBlend',
  displayName: 'Blend Images',
  category: 'image/filters',
  description: 'Lays the second image over the first in one of six modes.',
  style: 'schema',
  required: {
    image1: image({}),
    image2: image({}),
    blend_factor: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
    blend_mode: combo(BLEND_MODES),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image1, image2 }) => costOf(image1.data.length + image2.data.length),
  run({ image1, image2, blend_factor: factor, blend_mode: mode }, context) {
    const second = fitToFirst(image1, image2, context)
    const batch = commonBatch(image1, second)
    const result = context.allocate([batch, ...image1.shape.slice(1)])
    const size = result.data.length / batch
    const blend = { a: image1.data, b: second.data, out: result.data, size, mode, factor }
    if (size > 0) runRows(toBlendJob(blend), context)
    return { outputs: [result] }
  },
})
