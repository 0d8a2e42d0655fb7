import { defineNode } from '../define-node.ts'
import { combo, float, image } from '../input-kinds.ts'
import { NodeError } from '../node-error.ts'
import { alignChannels } from '../tensor/align-channels.ts'
import { BLOCK_ELEMENTS } from '../tensor/map-pixels.ts'
import type { PixelWork, Tensor } from '../tensor/tensor.ts'
import { upscale } from '../tensor/upscale.ts'
import { costOf } from './image-cost.ts'

const MODES = ['normal', 'multiply', 'screen', 'overlay', 'soft_light', 'difference'] as const
type Mode = (typeof MODES)[number]

function softLight(a: number, b: number): number {
  if (b <= 0.5) return a - (1 - 2 * b) * a * (1 - a)
  const lifted = a <= 0.25 ? ((16 * a - 12) * a + 4) * a : Math.sqrt(a)
  return a + (2 * b - 1) * (lifted - a)
}

const BLEND: Readonly<Record<Mode, (a: number, b: number) => number>> = {
  normal: (_a, b) => b,
  multiply: (a, b) => a * b,
  screen: (a, b) => 1 - (1 - a) * (1 - b),
  overlay: (a, b) => (a <= 0.5 ? 2 * a * b : 1 - 2 * (1 - a) * (1 - b)),
  soft_light: softLight,
  difference: (a, b) => a - b,
}

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
    const message = `The size of tensor a (${a}) must match the size of tensor b (${b}) at non-singleton dimension ${axis}`
    throw new NodeError('RuntimeError', message)
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
    blend_mode: combo(MODES),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image1, image2 }) => costOf(image1.data.length + image2.data.length),
  run({ image1, image2, blend_factor: factor, blend_mode: mode }, context) {
    const second = fitToFirst(image1, image2, context)
    const batch = commonBatch(image1, second)
    const result = context.allocate([batch, ...image1.shape.slice(1)])
    const size = result.data.length / batch
    const blend = BLEND[mode]
    for (let index = 0; index < batch; index++) {
      const a = image1.data.subarray(image1.shape[0] === 1 ? 0 : index * size)
      const b = second.data.subarray(second.shape[0] === 1 ? 0 : index * size)
      const out = result.data.subarray(index * size, (index + 1) * size)
      for (let i = 0; i < size; i++) {
        if (i % BLOCK_ELEMENTS === 0) context.checkpoint()
        const mixed = a[i] * (1 - factor) + blend(a[i], b[i]) * factor
        out[i] = Math.max(0, Math.min(1, mixed))
      }
    }
    return { outputs: [result] }
  },
})
