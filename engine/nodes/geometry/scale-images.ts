/**
 * Images scaled to a size that is given, or computed from the picture's own: so many pixels, so long a side, a model's
 * favourite sizes.
 */
import { roundHalfEven } from '../../../lib/python/values.ts'
import { costOf, defineNode, type EngineNode } from '../../node/define-node.ts'
import { withDefinition } from '../../node/dynamic-node.ts'
import { choice, combo, float, image, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { UPSCALE_METHODS } from '../../tensor/resize/resize-rows.ts'
import { CROP_METHODS, longerSideTo, scaledBy, upscale, withOpenSide } from '../../tensor/resize/upscale.ts'

// What the classic resizing nodes ask for, of images and of latents alike: a method, and a size or a factor.

/** A width and a height, of which 0 leaves one open. */
export function sizeInputs<const Method extends string>(methods: readonly Method[], step: number) {
  const side = int({ default: 512, min: 0, max: MAX_RESOLUTION, step })
  return { upscale_method: choice(methods), width: side, height: side, crop: choice(CROP_METHODS) }
}

export function factorInputs<const Method extends string>(methods: readonly Method[], fallback: number) {
  return {
    upscale_method: choice(methods),
    scale_by: float({ default: fallback, min: 0.01, max: 8, step: 0.01 }),
  }
}

export const imageScale = defineNode({
  classType: 'ImageScale',
  displayName: 'Upscale Image',
  category: 'image/upscaling',
  description: 'Resizes images to a width and a height; 0 for one of them keeps the aspect.',
  style: 'classic',
  required: { image: image(), ...sizeInputs(UPSCALE_METHODS, 1) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, width, height }) => costOf(tensor.data.length + tensor.shape[0] * width * height * 3),
  run({ image: tensor, upscale_method: method, width, height, crop }, context) {
    const [, oldHeight, oldWidth] = tensor.shape
    const size = withOpenSide({ width: oldWidth, height: oldHeight }, { width, height })
    return { outputs: [size === null ? tensor : upscale(tensor, { ...size, method, crop }, context)] }
  },
})

export const imageScaleBy = defineNode({
  classType: 'ImageScaleBy',
  displayName: 'Upscale Image By',
  category: 'image/upscaling',
  description: 'Resizes images by a factor.',
  style: 'classic',
  required: { image: image(), ...factorInputs(UPSCALE_METHODS, 1) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, scale_by: factor }) => costOf(tensor.data.length * Math.max(1, factor * factor)),
  run({ image: tensor, upscale_method: method, scale_by: factor }, context) {
    const [, oldHeight, oldWidth] = tensor.shape
    const size = scaledBy({ width: oldWidth, height: oldHeight }, factor)
    return { outputs: [upscale(tensor, { ...size, method, crop: 'disabled' }, context)] }
  },
})

const PIXELS_PER_MEGAPIXEL = 1_048_576

export const imageScaleToTotalPixels = defineNode({
  classType: 'ImageScaleToTotalPixels',
  displayName: 'Scale Image to Total Pixels',
  category: 'image/upscaling',
  description: 'Resizes images to about so many megapixels, both sides rounded to a step.',
  style: 'schema',
  required: {
    image: image({}),
    upscale_method: combo(UPSCALE_METHODS),
    megapixels: float({ default: 1, min: 0.01, max: 16, step: 0.01 }),
    resolution_steps: int({ advanced: true, default: 1, min: 1, max: 256 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, megapixels }) => costOf(tensor.data.length + megapixels * PIXELS_PER_MEGAPIXEL * 3),
  run({ image: tensor, upscale_method: method, megapixels, resolution_steps: step }, context) {
    const [, height, width] = tensor.shape
    const factor = Math.sqrt((megapixels * PIXELS_PER_MEGAPIXEL) / (width * height))
    const sideOf = (side: number) => roundHalfEven((side * factor) / step) * step
    const size = { width: sideOf(width), height: sideOf(height) }
    return { outputs: [upscale(tensor, { ...size, method, crop: 'disabled' }, context)] }
  },
})

export const imageScaleToMaxDimension = defineNode({
  classType: 'ImageScaleToMaxDimension',
  displayName: 'Scale Image to Max Dimension',
  category: 'image/upscaling',
  description: 'Resizes images so that their longer side has a given length.',
  style: 'schema',
  required: {
    image: image({}),
    // One method is listed twice upstream, and clients see the list as it is.
    upscale_method: combo(['area', 'lanczos', 'bilinear', 'nearest-exact', 'bilinear', 'bicubic']),
    largest_size: int({ default: 512, min: 0, max: MAX_RESOLUTION, step: 1 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, largest_size: side }) => costOf(tensor.data.length + side * side * 3 * tensor.shape[0]),
  run({ image: tensor, upscale_method: method, largest_size: side }, context) {
    const [, height, width] = tensor.shape
    const size = longerSideTo({ width, height }, side)
    return { outputs: [upscale(tensor, { ...size, method, crop: 'disabled' }, context)] }
  },
})

// Sizes of about one megapixel that the model was trained on, narrowest first; the wide ones mirror the tall ones.
const TALL_SIZES = [
  [672, 1568],
  [688, 1504],
  [720, 1456],
  [752, 1392],
  [800, 1328],
  [832, 1248],
  [880, 1184],
  [944, 1104],
] as const
const KONTEXT_SIZES = [
  ...TALL_SIZES,
  [1024, 1024] as const,
  ...TALL_SIZES.map(([short, long]) => [long, short] as const).reverse(),
]

/** The size whose aspect is nearest; the narrower of two that are equally near. */
function nearestKontextSize(aspect: number): { width: number; height: number } {
  const distanceTo = ([width, height]: readonly [number, number]) => Math.abs(aspect - width / height)
  const [width, height] = KONTEXT_SIZES.reduce((best, size) => (distanceTo(size) < distanceTo(best) ? size : best))
  return { width, height }
}

const fluxKontext = defineNode({
  classType: 'FluxKontextImageScale',
  displayName: 'FluxKontextImageScale',
  category: 'model/conditioning/flux',
  description: 'Crops and resizes images to the size that suits Flux Kontext best.',
  style: 'schema',
  required: { image: image({}) },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  run({ image: tensor }, context) {
    const [, height, width] = tensor.shape
    const size = nearestKontextSize(width / height)
    return { outputs: [upscale(tensor, { ...size, method: 'lanczos', crop: 'center' }, context)] }
  },
})

/** Upstream gives this class no name to show. */
export const fluxKontextImageScale: EngineNode = withDefinition(fluxKontext, { display_name: null })
