/** Latents of a list in groups of another size. A group holds latents of one height and width only. */
import { defineListNode } from '../../node/define-node.ts'
import { int } from '../../node/input-kinds.ts'
import { concatenate, sliceBatch } from '../../tensor/batch-axis.ts'
import { planeSize } from '../../tensor/resize/resize-planes.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { batchIndexOf, LATENT_SCALE, type Latent, latent, noiseMaskOf } from './latent.ts'

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
