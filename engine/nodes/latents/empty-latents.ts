/** Latents of zeros, to be filled by a sampler. They differ in channels and in pixels per cell. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { unnamed } from '../../node/dynamic-node.ts'
import { int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import type { ValueObject } from '../../values/value.ts'

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
