/**
 * LATENT: an object with the tensor `samples` ([batch, channels, height / 8, width / 8], with time before height for
 * video) and members that nodes hand on: `noise_mask`, `batch_index`, and whatever else a producer added.
 */

import { encodeSafetensors, openSafetensors } from '../../files/safetensors.ts'
import type { InputOptions } from '../../graph/node-catalog.ts'
import { costOf, defineNode } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { type InputKind, int, MAX_RESOLUTION, string } from '../../node/input-kinds.ts'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { fitBatch } from '../../tensor/batch-axis.ts'
import { inBlocks, mapBlocks } from '../../tensor/channels.ts'
import { planeSize, resizePlanes } from '../../tensor/resize/upscale.ts'
import { type PixelWork, Tensor } from '../../tensor/tensor.ts'
import { isValueObject, type Value, type ValueObject, valueTypeName } from '../../values/value.ts'
import { findInput } from '../files/load-image.ts'
import { hidden, madeFromTexts, nameFile, outputTarget } from '../files/save-image.ts'

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

// Latents of zeros, to be filled by a sampler. They differ in channels and in pixels per cell.

interface Layout {
  readonly channels: number
  readonly scale: number
  /** Published to later nodes by most layouts. */
  readonly members: ValueObject
}

interface Size {
  readonly width: number
  readonly height: number
  readonly batch_size: number
}

function sides(fallback: number, step: number) {
  const side = () => int({ default: fallback, min: 16, max: MAX_RESOLUTION, step })
  return { width: side(), height: side(), batch_size: int({ default: 1, min: 1, max: 4096 }) }
}

function makeEmpty({ width, height, batch_size }: Size, layout: Layout, context: NodeContext): CallResult {
  const { channels, scale, members } = layout
  const samples = context.allocate([batch_size, channels, Math.floor(height / scale), Math.floor(width / scale)])
  inBlocks(samples.data.length, context.checkpoint, (start, end) => samples.data.fill(0, start, end))
  return { outputs: [{ samples, ...members }] }
}

const cost =
  ({ channels, scale }: Layout) =>
  ({ width, height, batch_size }: Size) =>
    costOf((width * height * batch_size * channels) / (scale * scale))

const SD: Layout = { channels: 4, scale: 8, members: { downscale_ratio_spacial: 8 } }
const SD3: Layout = { channels: 16, scale: 8, members: { downscale_ratio_spacial: 8 } }
const FLUX2: Layout = { channels: 128, scale: 16, members: {} }

const outputs = [{ type: 'LATENT' }] as const

export const emptyLatentImage = defineNode({
  classType: 'EmptyLatentImage',
  displayName: 'Empty Latent Image',
  category: 'model/latent',
  description: 'Empty latents of four channels, for Stable Diffusion and its relatives.',
  style: 'classic',
  required: sides(512, 8),
  outputs,
  cost: cost(SD),
  run: (size, context) => makeEmpty(size, SD, context),
})

export const emptySd3LatentImage = unnamed(
  defineNode({
    classType: 'EmptySD3LatentImage',
    displayName: 'EmptySD3LatentImage',
    category: 'model/latent/stable diffusion',
    description: 'Empty latents of sixteen channels, for Stable Diffusion 3 and Flux.',
    style: 'schema',
    required: sides(1024, 16),
    outputs,
    cost: cost(SD3),
    run: (size, context) => makeEmpty(size, SD3, context),
  }),
)

export const emptyFlux2LatentImage = defineNode({
  classType: 'EmptyFlux2LatentImage',
  displayName: 'Empty Flux 2 Latent',
  category: 'model/latent/flux',
  description: 'Empty latents of 128 channels, for Flux 2.',
  style: 'schema',
  required: sides(1024, 16),
  outputs,
  cost: cost(FLUX2),
  run: (size, context) => makeEmpty(size, FLUX2, context),
})

// Latents in files of their own, in the form that other installations read.

const SAMPLES = 'latent_tensor'
// Its presence says that the samples are as samplers use them.
const CURRENT_FORMAT = 'latent_format_version_0'

export const saveLatent = defineNode({
  classType: 'SaveLatent',
  displayName: 'Save Latent',
  category: 'model/latent',
  description: 'Writes latents as an output file that remembers its workflow.',
  style: 'classic',
  required: { samples: latent(), filename_prefix: string({ default: 'latents/ComfyUI' }) },
  hidden,
  outputs: [{ type: 'LATENT', name: 'samples' }],
  isOutputNode: true,
  cost: ({ samples: { samples } }) => costOf(samples.data.length),
  async run({ samples: given, filename_prefix: prefix }, context) {
    const { shape, data } = given.samples
    const target = outputTarget(context, { prefix, extension: 'latent', contentType: 'application/x-latent' })
    const tensors = [
      { name: CURRENT_FORMAT, shape: [0], data: new Float32Array() },
      { name: SAMPLES, shape, data },
    ]
    const file = await nameFile(encodeSafetensors(tensors, madeFromTexts(context)), target, context)
    return { outputs: [given], report: { latents: [file] } }
  },
})

/** The list of choices stays empty: names are judged against the files that the run is given. */
const latentFile: InputKind<string> = { spec: [[]], read: string().read }

// Files of the first format hold samples scaled for storage.
const OLD_SCALE = 0.18215

function unscale(samples: Tensor, work: PixelWork): Tensor {
  const factor = Math.fround(1 / OLD_SCALE)
  return mapBlocks(samples, work, (from, to, { start, end }) => {
    for (let i = start; i < end; i++) to[i] = from[i] * factor
  })
}

export const loadLatent = defineNode({
  classType: 'LoadLatent',
  displayName: 'Load Latent',
  category: 'model/latent',
  description: 'Reads an uploaded latent file.',
  style: 'classic',
  required: { latent: latentFile },
  outputs: [{ type: 'LATENT' }],
  selfChecked: ['latent'],
  cost: 'compute',
  changeValue: ({ latent: name }, context) => (name === undefined ? null : findInput('latent', name, context).hash),
  async run({ latent: name }, context) {
    await using file = await openSafetensors(findInput('latent', name, context).path)
    const samples = await file.read(SAMPLES, context)
    return { outputs: [{ samples: file.has(CURRENT_FORMAT) ? samples : unscale(samples, context) }] }
  },
})
