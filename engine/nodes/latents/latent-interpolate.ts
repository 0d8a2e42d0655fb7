/**
 * Mixes the directions of two latents and their lengths apart from each other, so that a mixture of two strong latents
 * stays strong. Each pixel's channels are one vector.
 */
import { costOf, defineNode } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { float } from '../../node/input-kinds.ts'
import { broadcastShape, expandTo } from '../../tensor/broadcast.ts'
import { elementCount, type PixelWork, type Tensor } from '../../tensor/tensor.ts'
import { fitLatent, latent, withSamples } from './latent.ts'

interface Cells {
  readonly a: Float32Array
  readonly b: Float32Array
  readonly out: Float32Array
  /** Values from one channel to the next. */
  readonly stride: number
  readonly channels: number
}

interface CellRange {
  readonly start: number
  readonly end: number
}

/** 0 has no direction, and stays 0. */
const unit = (length: number) => (length === 0 ? 0 : 1 / length)

function mixRange({ a, b, out, stride, channels }: Cells, ratio: number, { start, end }: CellRange): void {
  const rest = 1 - ratio
  for (let cell = start; cell < end; cell++) {
    const last = cell + channels * stride
    let [aa, bb, ab] = [0, 0, 0]
    for (let at = cell; at < last; at += stride) {
      aa += a[at] * a[at]
      bb += b[at] * b[at]
      ab += a[at] * b[at]
    }
    const [lengthA, lengthB] = [Math.sqrt(aa), Math.sqrt(bb)]
    const ofA = ratio * unit(lengthA)
    const ofB = rest * unit(lengthB)
    const mixed = Math.sqrt(Math.max(0, ofA * ofA * aa + 2 * ofA * ofB * ab + ofB * ofB * bb))
    const scale = (lengthA * ratio + lengthB * rest) * unit(mixed)
    for (let at = cell; at < last; at += stride) out[at] = (a[at] * ofA + b[at] * ofB) * scale
  }
}

const CELLS_PER_CHECK = 16_384

function mix(first: Tensor, second: Tensor, { ratio, work }: { ratio: number; work: PixelWork }): Tensor {
  const shape = broadcastShape(first.shape, second.shape)
  const [a, b] = [expandTo(first, shape, work).data, expandTo(second, shape, work).data]
  const result = work.allocate(shape)
  const [batch, channels] = shape
  const stride = elementCount(shape.slice(2))
  const cells = { a, b, out: result.data, stride, channels }
  for (let member = 0; member < batch; member++) {
    const from = member * channels * stride
    for (let cell = 0; cell < stride; cell += CELLS_PER_CHECK) {
      work.checkpoint()
      mixRange(cells, ratio, { start: from + cell, end: from + Math.min(cell + CELLS_PER_CHECK, stride) })
    }
  }
  return result
}

export const latentInterpolate = unnamed(
  defineNode({
    classType: 'LatentInterpolate',
    displayName: 'LatentInterpolate',
    category: 'model/latent/advanced',
    description: 'Mixes two latents by direction and length: 1 is the first alone, 0 the second.',
    style: 'schema',
    required: {
      samples1: latent({}),
      samples2: latent({}),
      ratio: float({ default: 1, min: 0, max: 1, step: 0.01 }),
    },
    outputs: [{ type: 'LATENT' }],
    cost: ({ samples1, samples2 }) => costOf(samples1.samples.data.length + samples2.samples.data.length),
    run({ samples1, samples2, ratio }, context) {
      const second = fitLatent(samples1.samples, samples2.samples, context)
      return { outputs: [withSamples(samples1, mix(samples1.samples, second, { ratio, work: context }))] }
    },
  }),
)
