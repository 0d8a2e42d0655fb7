/** Latents joined and cut along an axis: x is the last, y the one before, t the one before that. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { combo, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { concatenate, fitBatch, narrow } from '../../tensor/batch-axis.ts'
import { latent, withSamples } from './latent.ts'

const facts = { category: 'model/latent/advanced', style: 'schema', outputs: [{ type: 'LATENT' }] } as const

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
