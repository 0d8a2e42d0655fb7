/** Latents computed value by value. The second is brought into the first's size and batch. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { float } from '../../node/input-kinds.ts'
import { mapPair, type Pair } from '../../tensor/broadcast.ts'
import { mapBlocks } from '../../tensor/map-pixels.ts'
import { planeSize, resizePlanes } from '../../tensor/resize/resize-planes.ts'
import { fitLatent, type Latent, latent, withSamples } from './latent.ts'

const outputs = [{ type: 'LATENT' }] as const
const facts = { category: 'model/latent/advanced', style: 'schema', outputs } as const

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
