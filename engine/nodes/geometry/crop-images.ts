/** Rectangles cut out of every image: given by numbers, by a box, in the middle, or where a seed decides. */
import { costOf, defineNode } from '../../node/define-node.ts'
import {
  boundingBox,
  color,
  float,
  image,
  int,
  MAX_RESOLUTION,
  MAX_SEED,
  mask,
  wideInt,
} from '../../node/input-kinds.ts'
import type { NodeContext } from '../../node/node-context.ts'
import { NodeError } from '../../node/node-error.ts'
import { seedNumpy } from '../../random/random.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { cutWindow, inBlocks, mapBlocks, paste, sliceOf, throughBytes, type Window } from '../../tensor/channels.ts'
import { slidingExtreme } from '../../tensor/filters/dilate.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { growToAspect, looksInverted, markedBox } from '../../tensor/rotate-and-mirror.ts'
import { type PixelWork, Tensor, viewOf } from '../../tensor/tensor.ts'
import { previewImages } from '../files/save-image.ts'

// Cuts out what a mask marks and puts it on a plain background: the input that 3D models want.

const FAINT = 0.05

interface Wanted {
  readonly width: number
  readonly height: number
  readonly padFactor: number
  readonly grow: number
  readonly background: readonly number[]
}

/** `#rrggbb`; anything else is black. */
function backgroundOf(text: string): number[] {
  const digits = text.replace(/^#+/, '')
  if (digits.length !== 6) return [0, 0, 0]
  return [0, 2, 4].map((at) => {
    const pair = digits.slice(at, at + 2)
    if (!/^[0-9a-f]{2}$/i.test(pair)) {
      throw new NodeError('ValueError', `invalid literal for int() with base 16: '${pair}'`)
    }
    return Number.parseInt(pair, 16) / 255
  })
}

/** Masks as many as images and of their size. */
function fitMasks(masks: Tensor, images: Tensor, work: PixelWork): Tensor {
  const [batch, height, width] = images.shape
  const stacked = masks.shape.length === 2 ? new Tensor([1, ...masks.shape], masks.data) : masks
  if (stacked.shape[0] !== 1 && stacked.shape[0] !== batch) {
    throw new NodeError('ValueError', `Mask batch ${stacked.shape[0]} does not match image batch ${batch}`)
  }
  return upscale(stacked, { width, height, method: 'bilinear', crop: 'disabled' }, work)
}

/** The first three channels, held within 0..1. */
function rgbOf(frame: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const { height, width, channels, data } = viewOf(frame)
  const rgb = allocate([1, height, width, 3])
  inBlocks(height * width, checkpoint, (start, end) => {
    for (let pixel = start; pixel < end; pixel++) {
      for (let c = 0; c < 3; c++) {
        const value = data[pixel * channels + Math.min(c, channels - 1)]
        rgb.data[pixel * 3 + c] = value < 0 ? 0 : value > 1 ? 1 : value
      }
    }
  })
  return rgb
}

/** The mask the right way round, grown or shrunk, without its faint parts. */
function prepareMask(given: Tensor, grow: number, work: PixelWork): Tensor {
  const { width, height } = viewOf(given)
  const isInverted = looksInverted({ data: given.data, width, height, checkpoint: work.checkpoint })
  let prepared = mapBlocks(given, work, (from, to, { start, end }) => {
    for (let i = start; i < end; i++) {
      const value = Math.max(0, Math.min(1, from[i]))
      to[i] = isInverted ? 1 - value : value
    }
  })
  if (grow !== 0) {
    const reach = Math.abs(grow)
    const kind = grow > 0 ? 'max' : 'min'
    prepared = slidingExtreme(prepared, { kind, size: 2 * reach + 1, origin: reach }, work)
  }
  return mapBlocks(prepared, work, (from, to, { start, end }) => {
    for (let i = start; i < end; i++) to[i] = from[i] < FAINT ? 0 : from[i]
  })
}

/** Both no larger than what comes out. */
function shrinkTo(longest: number, tensor: Tensor, work: PixelWork): Tensor {
  const { width, height } = viewOf(tensor)
  const side = Math.max(width, height)
  if (side <= longest) return tensor
  const factor = longest / side
  const size = { width: Math.trunc(width * factor), height: Math.trunc(height * factor) }
  return upscale(tensor, { ...size, method: 'lanczos', crop: 'disabled' }, work)
}

/** The window with the picture where the mask is and the background elsewhere, also beyond the picture. */
function compose(
  { rgb, alpha, isInverted }: { rgb: Tensor; alpha: Tensor; isInverted: boolean },
  window: Window,
  { background, work }: { background: readonly number[]; work: PixelWork },
): Tensor {
  const { width, height } = viewOf(rgb)
  const result = work.allocate([1, window.height, window.width, 3])
  for (let row = 0, out = 0; row < window.height; row++) {
    work.checkpoint()
    const y = window.y + row
    for (let col = 0; col < window.width; col++) {
      const x = window.x + col
      const isInside = x >= 0 && y >= 0 && x < width && y < height
      const pixel = y * width + x
      const given = isInside ? alpha.data[pixel] : 0
      const share = isInside && isInverted ? 1 - given : given
      for (let c = 0; c < 3; c++, out++) {
        const value = isInside ? rgb.data[pixel * 3 + c] : 0
        result.data[out] = Math.max(0, Math.min(1, value * share + background[c] * (1 - share)))
      }
    }
  }
  return result
}

function cropOne(frame: Tensor, given: Tensor, { wanted, work }: { wanted: Wanted; work: PixelWork }): Tensor {
  const { width, height, padFactor, grow, background } = wanted
  const longest = Math.max(width, height)
  const rgb = shrinkTo(longest, rgbOf(frame, work), work)
  const alpha = shrinkTo(longest, prepareMask(given, grow, work), work)
  const [, planeHeight, planeWidth] = rgb.shape
  const plane = { data: alpha.data, width: planeWidth, height: planeHeight, checkpoint: work.checkpoint }
  const marked = markedBox(plane, false)
  // With nothing clearly marked, what is clearly not may be what was meant.
  const box = marked ?? markedBox(plane, true)
  const whole = { x: 0, y: 0, width: planeWidth, height: planeHeight }
  const window = box === null ? whole : growToAspect(box, { aspect: width / height, factor: padFactor })
  const isInverted = marked === null && box !== null
  const composed = compose({ rgb, alpha, isInverted }, window, { background, work })
  return upscale(composed, { width, height, method: 'lanczos', crop: 'disabled' }, work)
}

function cropAll(images: Tensor, masks: Tensor, { wanted, context }: { wanted: Wanted; context: NodeContext }): Tensor {
  const fitted = fitMasks(masks, images, context)
  const [batch] = images.shape
  const result = context.allocate([batch, wanted.height, wanted.width, 3])
  for (let index = 0; index < batch; index++) {
    const given = sliceBatch(fitted, fitted.shape[0] === 1 ? 0 : index, 1)
    const cropped = cropOne(sliceBatch(images, index, 1), given, { wanted, work: context })
    paste(sliceBatch(result, index, 1), cropped, { x: 0, y: 0, frameOf: () => 0, checkpoint: context.checkpoint })
  }
  return result
}

const largeSide = () => int({ default: 1024, min: 64, max: 4096, step: 8 })

export const imageCropToMask = defineNode({
  classType: 'ImageCropToMask',
  displayName: 'Crop Image to Mask',
  category: 'image/transform',
  description: 'Cuts the marked part out of every image, on a plain background and at a given size.',
  style: 'schema',
  required: {
    images: image({}),
    masks: mask({}),
    width: largeSide(),
    height: largeSide(),
    pad_factor: float({ default: 1, min: 1, max: 2, step: 0.01 }),
    grow_mask: int({ default: 0, min: -32, max: 32, step: 1 }),
    background: color({ default: '#000000', socketless: true }),
  },
  outputs: [{ type: 'IMAGE', name: 'images' }],
  cost: 'compute',
  run({ images, masks, width, height, pad_factor: padFactor, grow_mask: grow, background }, context) {
    const wanted = { width, height, padFactor, grow, background: backgroundOf(background) }
    return { outputs: [cropAll(images, masks, { wanted, context })] }
  },
})

const side = () => int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 })
const offset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 1 })

export const imageCrop = defineNode({
  classType: 'ImageCrop',
  displayName: 'Crop Image (DEPRECATED)',
  category: 'image/transform',
  description: 'Cuts a rectangle out of every image; it comes out smaller where the image ends.',
  style: 'schema',
  deprecated: true,
  required: { image: image({}), width: side(), height: side(), x: offset(), y: offset() },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, width, height, x: left, y: top }, context) {
    const [, oldHeight, oldWidth] = tensor.shape
    const x = Math.min(left, oldWidth - 1)
    const y = Math.min(top, oldHeight - 1)
    const window = { x, y, width: Math.min(width, oldWidth - x), height: Math.min(height, oldHeight - y) }
    return { outputs: [cutWindow(tensor, window, context)] }
  },
})

export const imageCropV2 = defineNode({
  classType: 'ImageCropV2',
  displayName: 'Crop Image',
  category: 'image/transform',
  description: 'Cuts a box out of every image; it comes out smaller where the image ends.',
  style: 'schema',
  hasIntermediateOutput: true,
  required: { image: image({}), crop_region: boundingBox({ component: 'ImageCrop' }) },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  async run({ image: tensor, crop_region: box }, context) {
    const [, height, width] = tensor.shape
    const left = Math.min(box.x, width - 1)
    const top = Math.min(box.y, height - 1)
    const across = sliceOf(left, left + box.width, width)
    const down = sliceOf(top, top + box.height, height)
    const window = { x: across.from, y: down.from, width: across.count, height: down.count }
    const cropped = cutWindow(tensor, window, context)
    const images = await previewImages(cropped, { texts: [] }, context)
    return { outputs: [cropped], report: { images, animated: [{ kind: 'value', value: false }] } }
  },
})

const cropSide = () => int({ default: 512, min: 1, max: 8192 })

const facts = {
  category: 'image/transform',
  style: 'schema',
  outputs: [{ type: 'IMAGE', name: 'images' }],
  experimental: true,
} as const

interface Cut {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** Never larger than the image: a crop that does not fit is cut off. */
function cut(images: Tensor, { left, top, width, height }: Cut, work: PixelWork) {
  const [, oldHeight, oldWidth] = images.shape
  const window = { x: left, y: top, width: Math.min(width, oldWidth - left), height: Math.min(height, oldHeight - top) }
  return { outputs: [throughBytes(cutWindow(images, window, work), work)] }
}

export const centerCropImages = defineNode({
  ...facts,
  classType: 'CenterCropImages',
  displayName: 'Crop Image (Center)',
  description: 'Cuts the middle out of every image.',
  required: { images: image({}), width: cropSide(), height: cropSide() },
  cost: ({ images }) => costOf(images.data.length),
  run({ images, width, height }, context) {
    const [, oldHeight, oldWidth] = images.shape
    const left = Math.max(0, Math.floor((oldWidth - width) / 2))
    const top = Math.max(0, Math.floor((oldHeight - height) / 2))
    return cut(images, { left, top, width, height }, context)
  },
})

export const randomCropImages = defineNode({
  ...facts,
  classType: 'RandomCropImages',
  displayName: 'Crop Image (Random)',
  description: 'Cuts every image at a place drawn from the seed, the same for all of a batch.',
  required: {
    images: image({}),
    width: cropSide(),
    height: cropSide(),
    seed: wideInt({ default: 0, min: 0, max: MAX_SEED }),
  },
  cost: ({ images }) => costOf(images.data.length),
  run({ images, width, height, seed }, context) {
    const [, oldHeight, oldWidth] = images.shape
    // Upstream seeds anew for each frame, so one draw stands for all of them.
    const draw = seedNumpy(seed)
    const left = draw.bounded(Math.max(0, oldWidth - width))
    const top = draw.bounded(Math.max(0, oldHeight - height))
    return cut(images, { left, top, width, height }, context)
  },
})
