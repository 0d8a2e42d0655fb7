/**
 * LATENT: an object with the tensor `samples` ([batch, channels, height / 8, width / 8], with time before height for
 * video) and members that nodes hand on: `noise_mask`, `batch_index`, and whatever else a producer added.
 */
import type { InputOptions } from '../../graph/node-catalog.ts'
import type { InputKind } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { fitBatch } from '../../tensor/batch-axis.ts'
import { planeSize, resizePlanes } from '../../tensor/resize/resize-planes.ts'
import { type PixelWork, Tensor } from '../../tensor/tensor.ts'
import { isValueObject, type Value, type ValueObject, valueTypeName } from '../../values/value.ts'

export type Latent = ValueObject & { readonly samples: Tensor }

/** Pixels of the picture per cell of a latent, where a node has to assume it. */
export const LATENT_SCALE = 8

const LEAST_RANK = 4

function readLatent(value: Value, name: string): Latent {
  if (!isValueObject(value)) {
    throw new NodeError('TypeError', `${name}: expected a latent, got '${valueTypeName(value)}'`)
  }
  const samples = Object.hasOwn(value, 'samples') ? value.samples : null
  if (!(samples instanceof Tensor)) throw new NodeError('KeyError', "'samples'")
  if (samples.shape.length < LEAST_RANK) {
    const shape = `[${samples.shape.join(', ')}]`
    throw new NodeError('RuntimeError', `${name}: expected at least ${LEAST_RANK} dimensions, got a tensor of ${shape}`)
  }
  return value as Latent
}

export function latent(options?: InputOptions): InputKind<Latent> {
  return { spec: options === undefined ? ['LATENT'] : ['LATENT', options], read: readLatent }
}

/** The same latent with other samples; everything else is handed on. */
export function withSamples(given: Latent, samples: Tensor): Latent {
  return { ...given, samples }
}

/** [masks, 1, height, width], or null. */
export function noiseMaskOf(given: Latent): Tensor | null {
  return given.noise_mask instanceof Tensor ? given.noise_mask : null
}

/** Which noise belongs to each member of the batch; null when the latent does not say. */
export function batchIndexOf(given: Latent): number[] | null {
  return Array.isArray(given.batch_index) ? given.batch_index.map(Number) : null
}

export function countFrom(start: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => start + index)
}

/** In the height and width of the leader; the batch stays. */
export function fitPlanes(leader: Tensor, follower: Tensor, work: PixelWork): Tensor {
  return resizePlanes(follower, { ...planeSize(leader), method: 'bilinear', crop: 'center' }, work)
}

/** In the leader's height, width and batch. */
export function fitLatent(leader: Tensor, follower: Tensor, work: PixelWork): Tensor {
  return fitBatch(fitPlanes(leader, follower, work), leader.shape[0], work)
}
