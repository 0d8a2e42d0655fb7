/** Latents computed value by value. The second is brought into the first's size and batch. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { combo, float, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { broadcastShape, concatenate, expandTo, fitBatch, mapPair, narrow, type Pair } from '../../tensor/batch-axis.ts'
import { mapBlocks } from '../../tensor/channels.ts'
import { planeSize, resizePlanes } from '../../tensor/resize/upscale.ts'
import { elementCount, type PixelWork, type Tensor } from '../../tensor/tensor.ts'
import { fitLatent, type Latent, latent, withSamples } from './latents.ts'

const outputs = [{ type: 'LATENT' }] as const
const facts = { category: 'model/latent/advanced', style: 'schema', outputs } as const

// Mixes the directions of two latents and their lengths apart from each other, so that a mixture of two strong latents
// stays strong. Each pixel's channels are one vector.

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

// Latents joined and cut along an axis: x is the last, y the one before, t the one before that.

type Axis = 'x' | 'y' | 't'
const FROM_END: Readonly<Record<Axis, number>> = { x: 1, y: 2, t: 3 }

export const latentConcat = unnamed(
  defineNode({
    ...facts,
    classType: 'LatentConcat',
    displayName: 'LatentConcat',
    description: 'Puts two latents side by side, one above the other, or one after the other.',
    required: {
      samples1: latent({}),
      samples2: latent({}),
      dim: combo(['x', '-x', 'y', '-y', 't', '-t']),
    },
    cost: ({ samples1, samples2 }) => costOf(samples1.samples.data.length + samples2.samples.data.length),
    run({ samples1, samples2, dim }, context) {
      const first = samples1.samples
      const second = fitBatch(samples2.samples, first.shape[0], context)
      const isReversed = dim.startsWith('-')
      const axis = first.shape.length - FROM_END[dim.replace('-', '') as Axis]
      const joined = concatenate(isReversed ? [second, first] : [first, second], context, { axis })
      return { outputs: [withSamples(samples1, joined)] }
    },
  }),
)

/** Starts at the last index at most; a negative index counts from the end, and takes nothing beyond it. */
function rangeOf(size: number, index: number, amount: number): { start: number; count: number } {
  if (index >= 0) {
    const start = Math.min(index, size - 1)
    return { start, count: Math.min(size - start, amount) }
  }
  const start = Math.max(0, size + index)
  return { start, count: Math.min(size - start, amount) }
}

export const latentCut = unnamed(
  defineNode({
    ...facts,
    classType: 'LatentCut',
    displayName: 'LatentCut',
    description: 'Takes a part of a latent along one axis.',
    required: {
      samples: latent({}),
      dim: combo(['x', 'y', 't']),
      index: int({ default: 0, min: -MAX_RESOLUTION, max: MAX_RESOLUTION, step: 1 }),
      amount: int({ default: 1, min: 1, max: MAX_RESOLUTION, step: 1 }),
    },
    cost: ({ samples: { samples } }) => costOf(samples.data.length),
    run({ samples: given, dim, index, amount }, context) {
      const axis = given.samples.shape.length - FROM_END[dim]
      const range = rangeOf(given.samples.shape[axis], index, amount)
      return { outputs: [withSamples(given, narrow(given.samples, { axis, ...range }, context))] }
    },
  }),
)

const costOfPair = ({ samples1, samples2 }: { readonly samples1: Latent; readonly samples2: Latent }) =>
  costOf(samples1.samples.data.length + samples2.samples.data.length)

interface PairNode {
  readonly classType: string
  readonly description: string
  readonly fill: (pair: Pair) => void
}

function definePairNode({ classType, description, fill }: PairNode) {
  return unnamed(
    defineNode({
      ...facts,
      classType,
      displayName: classType,
      description,
      required: { samples1: latent({}), samples2: latent({}) },
      cost: costOfPair,
      run({ samples1, samples2 }, context) {
        const second = fitLatent(samples1.samples, samples2.samples, context)
        return { outputs: [withSamples(samples1, mapPair(samples1.samples, second, context, fill))] }
      },
    }),
  )
}

export const latentAdd = definePairNode({
  classType: 'LatentAdd',
  description: 'Adds two latents.',
  fill({ a, b, out, start, end }) {
    for (let i = start; i < end; i++) out[i] = a[i] + b[i]
  },
})

export const latentSubtract = definePairNode({
  classType: 'LatentSubtract',
  description: 'Subtracts the second latent from the first.',
  fill({ a, b, out, start, end }) {
    for (let i = start; i < end; i++) out[i] = a[i] - b[i]
  },
})

export const latentMultiply = unnamed(
  defineNode({
    ...facts,
    classType: 'LatentMultiply',
    displayName: 'LatentMultiply',
    description: 'Multiplies a latent by a number.',
    required: { samples: latent({}), multiplier: float({ default: 1, min: -10, max: 10, step: 0.01 }) },
    cost: ({ samples: { samples } }) => costOf(samples.data.length),
    run({ samples: given, multiplier }, context) {
      const factor = Math.fround(multiplier)
      const product = mapBlocks(given.samples, context, (from, to, { start, end }) => {
        for (let i = start; i < end; i++) to[i] = from[i] * factor
      })
      return { outputs: [withSamples(given, product)] }
    },
  }),
)

// This class declares its limits as integers, and `object_info` shows them so.
const blendFactor = {
  spec: ['FLOAT', { default: 0.5, min: 0, max: 1, step: 0.01 }],
  read: float().read,
} as const

export const latentBlend = defineNode({
  classType: 'LatentBlend',
  displayName: 'Latent Blend',
  category: 'experimental',
  description: 'Mixes two latents: 1 is the first alone, 0 the second.',
  style: 'classic',
  required: { samples1: latent(), samples2: latent(), blend_factor: blendFactor },
  outputs,
  cost: costOfPair,
  run({ samples1, samples2, blend_factor: factor }, context) {
    const size = planeSize(samples1.samples)
    const second = resizePlanes(samples2.samples, { ...size, method: 'bicubic', crop: 'center' }, context)
    const rest = 1 - factor
    const blended = mapPair(samples1.samples, second, context, ({ a, b, out, start, end }) => {
      for (let i = start; i < end; i++) out[i] = a[i] * factor + b[i] * rest
    })
    return { outputs: [withSamples(samples1, blended)] }
  },
})
