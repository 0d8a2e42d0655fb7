/** Latents rotated, mirrored and cropped, by cells. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { choice, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { broadcastShape, copyInto, expandTo, narrow, reshape } from '../../tensor/batch-axis.ts'
import { sliceOf } from '../../tensor/channels.ts'
import { type Paste, pastePicture } from '../../tensor/compose/paste.ts'
import { PLANE_METHODS, planeSize, resizePlanes, scaledBy, withOpenSide } from '../../tensor/resize/upscale.ts'
import { mirrorLeftRight, mirrorUpDown, rotate } from '../../tensor/rotate-and-mirror.ts'
import { elementCount, type PixelWork, type Tensor } from '../../tensor/tensor.ts'
import { factorInputs, sizeInputs } from '../geometry/scale-images.ts'
import { QUARTER_TURNS, ROTATIONS } from '../geometry/turn-and-pad.ts'
import { LATENT_SCALE, type Latent, latent, withSamples } from './latents.ts'

const side = () => int({ default: 512, min: 64, max: MAX_RESOLUTION, step: 8 })
const offset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 8 })

// One latent laid over another, with edges that fade.

interface Edge {
  readonly length: number
  readonly feather: number
  /** Whether each end fades; an end that lies on the destination's border does not. */
  readonly fadesIn: boolean
  readonly fadesOut: boolean
}

/** Weights along one axis. A feather longer than the axis wraps round its far end, as Python's negative indexes do. */
function edgeWeights({ length, feather, fadesIn, fadesOut }: Edge): Float64Array {
  const weights = new Float64Array(length).fill(1)
  for (let line = 0; line < feather; line++) {
    const weight = (1 / feather) * (line + 1)
    if (fadesIn && line < length) weights[line] *= weight
    if (!fadesOut) continue
    const { from, count } = sliceOf(length - 1 - line, length - line, length)
    if (count > 0) weights[from] *= weight
  }
  return weights
}

function featherMask(columns: Float64Array, rows: Float64Array, { allocate, checkpoint }: PixelWork): Paste['mask'] {
  const [width, height] = [columns.length, rows.length]
  const { data } = allocate([height, width])
  for (let y = 0; y < height; y++) {
    checkpoint()
    for (let x = 0; x < width; x++) data[y * width + x] = columns[x] * rows[y]
  }
  return { data, start: 0, width, height }
}

interface Placing {
  readonly at: number
  readonly size: number
  readonly room: number
  readonly feather: number
}

function weightsOf({ at, size, room, feather }: Placing): Float64Array {
  const length = Math.max(0, Math.min(size, room - at))
  return edgeWeights({ length, feather, fadesIn: at !== 0, fadesOut: at + length < room })
}

export const latentComposite = defineNode({
  classType: 'LatentComposite',
  displayName: 'Latent Composite',
  category: 'model/latent',
  description: 'Lays one latent over another at a place in the picture, with soft edges if wanted.',
  style: 'classic',
  required: { samples_to: latent(), samples_from: latent(), x: offset(), y: offset(), feather: offset() },
  outputs: [{ type: 'LATENT' }],
  cost: ({ samples_to, samples_from }) => costOf(samples_to.samples.data.length + samples_from.samples.data.length),
  run({ samples_to: given, samples_from, x, y, feather: softness }, context) {
    const below = given.samples
    const from = planeSize(samples_from.samples)
    const to = planeSize(below)
    const leading = below.shape.slice(0, -2)
    broadcastShape(leading, samples_from.samples.shape.slice(0, -2))
    const above = expandTo(samples_from.samples, [...leading, from.height, from.width], context)
    const [left, top, feather] = [x, y, softness].map((pixels) => Math.floor(pixels / LATENT_SCALE))
    const columns = weightsOf({ at: left, size: from.width, room: to.width, feather })
    const rows = weightsOf({ at: top, size: from.height, room: to.height, feather })
    const mask = feather === 0 ? null : featherMask(columns, rows, context)
    const result = context.allocate(below.shape)
    copyInto(result.data, 0, below.data, context.checkpoint)
    for (let plane = 0; plane < elementCount(leading); plane++) {
      const target = { data: result.data, start: plane * to.width * to.height, ...to }
      const source = { data: above.data, start: plane * from.width * from.height, ...from }
      pastePicture({ target, source, mask, channels: 1, x: left, y: top }, context)
    }
    return { outputs: [withSamples(given, result)] }
  },
})

// Latents resized; sizes are given in pixels of the picture.

const LEAST_SIDE = 64

export const latentUpscale = defineNode({
  classType: 'LatentUpscale',
  displayName: 'Upscale Latent',
  category: 'model/latent',
  description: 'Resizes latents to a picture size; 0 for one side keeps the aspect.',
  style: 'classic',
  required: { samples: latent(), ...sizeInputs(PLANE_METHODS, 8) },
  outputs: [{ type: 'LATENT' }],
  cost: ({ samples: { samples }, width, height }) =>
    costOf(samples.data.length + samples.shape[0] * samples.shape[1] * ((width * height) / LATENT_SCALE ** 2)),
  run({ samples: given, upscale_method: method, width, height, crop }, context) {
    const target = withOpenSide(planeSize(given.samples), { width, height }, LEAST_SIDE)
    if (target === null) return { outputs: [given] }
    const cells = {
      width: Math.floor(target.width / LATENT_SCALE),
      height: Math.floor(target.height / LATENT_SCALE),
    }
    return { outputs: [withSamples(given, resizePlanes(given.samples, { ...cells, method, crop }, context))] }
  },
})

export const latentUpscaleBy = defineNode({
  classType: 'LatentUpscaleBy',
  displayName: 'Upscale Latent By',
  category: 'model/latent',
  description: 'Resizes latents by a factor.',
  style: 'classic',
  required: { samples: latent(), ...factorInputs(PLANE_METHODS, 1.5) },
  outputs: [{ type: 'LATENT' }],
  cost: ({ samples: { samples }, scale_by: factor }) => costOf(samples.data.length * Math.max(1, factor * factor)),
  run({ samples: given, upscale_method: method, scale_by: factor }, context) {
    const cells = scaledBy(planeSize(given.samples), factor)
    const resized = resizePlanes(given.samples, { ...cells, method, crop: 'disabled' }, context)
    return { outputs: [withSamples(given, resized)] }
  },
})

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
