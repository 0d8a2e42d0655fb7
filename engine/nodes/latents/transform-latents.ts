/** Latents rotated, mirrored and cropped, by cells. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { choice, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { narrow, reshape } from '../../tensor/batch-axis.ts'
import { planeSize } from '../../tensor/resize/resize-planes.ts'
import { mirrorLeftRight, mirrorUpDown, rotate } from '../../tensor/rotate-and-mirror.ts'
import { elementCount, type Tensor } from '../../tensor/tensor.ts'
import { sliceOf } from '../../tensor/window.ts'
import { QUARTER_TURNS, ROTATIONS } from '../geometry/quarter-turns.ts'
import { LATENT_SCALE, type Latent, latent, withSamples } from './latent.ts'

const facts = {
  category: 'model/latent/transform',
  style: 'classic',
  outputs: [{ type: 'LATENT' }],
  cost: ({ samples }: { readonly samples: Latent }) => costOf(samples.samples.data.length),
} as const

/** Every plane as an image of one channel. */
function asImages(samples: Tensor): Tensor {
  const { width, height } = planeSize(samples)
  return reshape(samples, [elementCount(samples.shape.slice(0, -2)), height, width, 1])
}

/** Back to the axes of the latent, with the sides that the images have now. */
function asPlanes(images: Tensor, { shape }: Tensor): Tensor {
  return reshape(images, [...shape.slice(0, -2), images.shape[1], images.shape[2]])
}

export const latentRotate = defineNode({
  ...facts,
  classType: 'LatentRotate',
  displayName: 'Rotate Latent',
  description: 'Turns latents clockwise by quarter turns.',
  required: { samples: latent(), rotation: choice(ROTATIONS) },
  run({ samples: given, rotation }, context) {
    const quarterTurns = QUARTER_TURNS[rotation]
    if (quarterTurns === 0) return { outputs: [given] }
    const rotated = rotate(asImages(given.samples), quarterTurns, context)
    return { outputs: [withSamples(given, asPlanes(rotated, given.samples))] }
  },
})

const FLIPS = ['x-axis: vertically', 'y-axis: horizontally'] as const

export const latentFlip = defineNode({
  ...facts,
  classType: 'LatentFlip',
  displayName: 'Flip Latent',
  description: 'Mirrors latents: upside down, or left and right exchanged.',
  required: { samples: latent(), flip_method: choice(FLIPS) },
  run({ samples: given, flip_method: method }, context) {
    const mirror = method === 'x-axis: vertically' ? mirrorUpDown : mirrorLeftRight
    return { outputs: [withSamples(given, asPlanes(mirror(asImages(given.samples), context), given.samples))] }
  },
})

// Upstream keeps a crop inside the latent only as far as 64 pixels go.
const LEAST_CELLS = 8

/** Cells from `start` on, as Python slices them when a latent smaller than the least puts the start before 0. */
function cropAxis(size: number, start: number, count: number) {
  const first = Math.min(start, size - LEAST_CELLS)
  return sliceOf(first, first + count, size)
}

const side = () => int({ default: 512, min: 64, max: MAX_RESOLUTION, step: 8 })
const offset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 8 })

export const latentCrop = defineNode({
  ...facts,
  classType: 'LatentCrop',
  displayName: 'Crop Latent',
  description: 'Cuts a rectangle, given in pixels of the picture, out of latents.',
  required: { samples: latent(), width: side(), height: side(), x: offset(), y: offset() },
  run({ samples: given, width, height, x, y }, context) {
    const { samples } = given
    const rank = samples.shape.length
    const size = planeSize(samples)
    const cells = (pixels: number) => Math.floor(pixels / LATENT_SCALE)
    const rows = cropAxis(size.height, cells(y), cells(height))
    const columns = cropAxis(size.width, cells(x), cells(width))
    const cut = narrow(samples, { axis: rank - 2, start: rows.from, count: rows.count }, context)
    const result = narrow(cut, { axis: rank - 1, start: columns.from, count: columns.count }, context)
    return { outputs: [withSamples(given, result)] }
  },
})
