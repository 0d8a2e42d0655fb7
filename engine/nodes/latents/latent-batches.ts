/** The batch axis of latents, and the two members that belong to it: noise masks and noise indexes. */
import { costOf, defineListNode, defineNode } from '../../node/define-node.ts'
import { autogrow, defineDynamicNode, unnamed } from '../../node/dynamic-node.ts'
import { combo, int, MAX_RESOLUTION, mask } from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { concatenate, fitBatch, repeatBatch, reshape, sliceBatch } from '../../tensor/batch-axis.ts'
import { planeSize } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import {
  batchIndexOf,
  countFrom,
  fitPlanes,
  LATENT_SCALE,
  type Latent,
  latent,
  noiseMaskOf,
  withSamples,
} from './latents.ts'

// Latents of a list in groups of another size. A group holds latents of one height and width only.

interface Single {
  readonly samples: Tensor
  /** null stands for a mask of ones. */
  readonly noiseMask: Tensor | null
  readonly index: number
}

/** Every latent by itself; those without an index are counted through the whole list. */
function toSingles(latents: readonly Latent[]): Single[] {
  const singles: Single[] = []
  for (const given of latents) {
    const masks = noiseMaskOf(given)
    const indexes = batchIndexOf(given)
    const before = singles.length
    for (let member = 0; member < given.samples.shape[0]; member++) {
      singles.push({
        samples: sliceBatch(given.samples, member, 1),
        noiseMask: masks === null ? null : sliceBatch(masks, member % masks.shape[0], 1),
        index: indexes?.[member] ?? before + member,
      })
    }
  }
  return singles
}

function isSameSize(a: Single, b: Single): boolean {
  const [left, right] = [planeSize(a.samples), planeSize(b.samples)]
  return left.width === right.width && left.height === right.height
}

function toGroups(singles: readonly Single[], size: number): Single[][] {
  const groups: Single[][] = []
  for (const single of singles) {
    const group = groups.at(-1)
    if (group !== undefined && group.length < size && isSameSize(group[0], single)) group.push(single)
    else groups.push([single])
  }
  return groups
}

function onesFor(samples: Tensor, { allocate }: PixelWork): Tensor {
  const { width, height } = planeSize(samples)
  const ones = allocate([1, 1, height * LATENT_SCALE, width * LATENT_SCALE])
  ones.data.fill(1)
  return ones
}

/** null when nothing is masked out: such a mask is left away. */
function joinMasks(group: readonly Single[], work: PixelWork): Tensor | null {
  if (group.every(({ noiseMask }) => noiseMask === null)) return null
  const ones = group.some(({ noiseMask }) => noiseMask === null) ? onesFor(group[0].samples, work) : null
  const joined = concatenate(
    group.map(({ noiseMask }) => noiseMask ?? (ones as Tensor)),
    work,
  )
  return joined.data.every((value) => value === 1) ? null : joined
}

export const rebatchLatents = defineListNode({
  classType: 'RebatchLatents',
  displayName: 'Rebatch Latents',
  category: 'model/latent/batch',
  description: 'Groups the latents of a list into batches of one size.',
  style: 'schema',
  required: { latents: latent({}), batch_size: int({ default: 1, min: 1, max: 4096 }) },
  outputs: [{ type: 'LATENT', isList: true }],
  cost: 'compute',
  run({ latents, batch_size: [size] }, context) {
    const batches = toGroups(toSingles(latents), size).map((group): Latent => {
      const noiseMask = joinMasks(group, context)
      return {
        samples: concatenate(
          group.map(({ samples }) => samples),
          context,
        ),
        ...(noiseMask !== null && { noise_mask: noiseMask }),
        batch_index: group.map(({ index }) => index),
      }
    })
    return { outputs: [batches] }
  },
})

const outputs = [{ type: 'LATENT' }] as const
const batchFacts = { category: 'model/latent/batch', style: 'classic', outputs } as const
const schemaFacts = { style: 'schema', outputs } as const

/** Python's index, kept inside the batch. */
function startOf(index: number, count: number): number {
  return index < 0 ? Math.max(0, count + index) : Math.min(count - 1, index)
}

export const latentFromBatch = defineNode({
  ...batchFacts,
  classType: 'LatentFromBatch',
  displayName: 'Get Latent From Batch',
  description: 'Takes some latents out of a batch; a negative index counts from the end.',
  required: {
    samples: latent(),
    batch_index: int({ default: 0, min: -MAX_RESOLUTION, max: MAX_RESOLUTION }),
    length: int({ default: 1, min: 1, max: 64 }),
  },
  // Samples are a view; only masks may have to be copied.
  cost: ({ samples }) => costOf(noiseMaskOf(samples)?.data.length ?? 0),
  run({ samples: given, batch_index: index, length: wanted }, context) {
    const { samples } = given
    const count = samples.shape[0]
    const start = startOf(index, count)
    const length = Math.min(count - start, wanted)
    const masks = noiseMaskOf(given)
    const noiseMask =
      masks === null || masks.shape[0] === 1 ? masks : sliceBatch(fitBatch(masks, count, context), start, length)
    const result: Latent = {
      ...withSamples(given, sliceBatch(samples, start, length)),
      ...(noiseMask !== null && { noise_mask: noiseMask }),
      batch_index: batchIndexOf(given)?.slice(start, start + length) ?? countFrom(start, length),
    }
    return { outputs: [result] }
  },
})

/** Indexes for the repetitions go on where the first ones end. */
function continueIndexes(indexes: readonly number[], times: number): number[] {
  const span = Math.max(...indexes) - Math.min(...indexes) + 1
  return Array.from({ length: times }, (_, round) => indexes.map((index) => index + round * span)).flat()
}

export const repeatLatentBatch = defineNode({
  ...batchFacts,
  classType: 'RepeatLatentBatch',
  displayName: 'Repeat Latent Batch',
  description: 'Repeats a batch of latents.',
  required: { samples: latent(), amount: int({ default: 1, min: 1, max: 64 }) },
  cost: ({ samples: { samples }, amount }) => costOf(samples.data.length * amount),
  run({ samples: given, amount }, context) {
    const masks = noiseMaskOf(given)
    const indexes = batchIndexOf(given)
    const result: Latent = {
      ...withSamples(given, repeatBatch(given.samples, amount, context)),
      ...(masks !== null && masks.shape[0] > 1 && { noise_mask: repeatBatch(masks, amount, context) }),
      ...(indexes !== null && indexes.length > 0 && { batch_index: continueIndexes(indexes, amount) }),
    }
    return { outputs: [result] }
  },
})

/** One batch in the size of the first, with the indexes of all. Other members are the first's. */
function joinLatents(latents: readonly Latent[], context: NodeContext): Latent {
  const [first] = latents
  const fitted = latents.map(({ samples }) => fitPlanes(first.samples, samples, context))
  const indexes = latents.flatMap((given) => batchIndexOf(given) ?? countFrom(0, given.samples.shape[0]))
  return { ...withSamples(first, concatenate(fitted, context)), batch_index: indexes }
}

export const latentBatch = defineNode({
  ...schemaFacts,
  classType: 'LatentBatch',
  displayName: 'Batch Latents (DEPRECATED)',
  category: 'model/latent/batch',
  description: 'Joins two latents into one batch, in the size of the first.',
  deprecated: true,
  required: { samples1: latent({}), samples2: latent({}) },
  cost: ({ samples1, samples2 }) => costOf(samples1.samples.data.length + samples2.samples.data.length),
  run: ({ samples1, samples2 }, context) => ({ outputs: [joinLatents([samples1, samples2], context)] }),
})

export const batchLatents = defineDynamicNode({
  ...schemaFacts,
  classType: 'BatchLatentsNode',
  displayName: 'Batch Latents',
  category: 'model/latent/batch',
  description: 'Joins latents into one batch, in the size of the first.',
  required: {
    latents: autogrow({ member: 'latent', kind: latent({}), naming: { prefix: 'latent', max: 50 }, min: 1 }),
  },
  cost: ({ latents }) => costOf(Object.values(latents).reduce((sum, { samples }) => sum + samples.data.length, 0)),
  run: ({ latents }, context) => ({ outputs: [joinLatents(Object.values(latents), context)] }),
})

export const latentBatchSeedBehavior = unnamed(
  defineNode({
    ...schemaFacts,
    classType: 'LatentBatchSeedBehavior',
    displayName: 'LatentBatchSeedBehavior',
    category: 'model/latent/advanced',
    description: 'Whether all latents of a batch get the same noise or each its own.',
    required: { samples: latent({}), seed_behavior: combo(['random', 'fixed'], { default: 'fixed' }) },
    cost: 'inline',
    run({ samples: given, seed_behavior: behavior }) {
      const { batch_index: _, ...rest } = given
      if (behavior === 'random') return { outputs: [rest] }
      const first = batchIndexOf(given)?.[0] ?? 0
      return { outputs: [{ ...rest, batch_index: countFrom(0, given.samples.shape[0]).fill(first) }] }
    },
  }),
)

export const setLatentNoiseMask = defineNode({
  classType: 'SetLatentNoiseMask',
  displayName: 'Set Latent Noise Mask',
  category: 'model/latent',
  description: 'Limits later noise to what a mask marks.',
  style: 'classic',
  required: { samples: latent(), mask: mask() },
  outputs,
  cost: 'inline',
  run({ samples: given, mask: tensor }) {
    const [height, width] = tensor.shape.slice(-2)
    const count = tensor.shape.length === 3 ? tensor.shape[0] : 1
    return { outputs: [{ ...given, noise_mask: reshape(tensor, [count, 1, height, width]) }] }
  },
})
