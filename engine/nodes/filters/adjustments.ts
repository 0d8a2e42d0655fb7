/** Every value changed by itself: brightness, contrast, normalisation, negatives and noise. */
import { costOf, defineNode, values } from '../../node/define-node.ts'
import { combo, float, image, MAX_SEED, wideInt } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { fillTorchNormal } from '../../random/random.ts'
import { sizeMismatch } from '../../tensor/batch-axis.ts'
import { byteOf } from '../../tensor/bytes.ts'
import { alignChannels, changeValues, clampToUnit, inBlocks } from '../../tensor/channels.ts'
import { BLEND_MODES, toBlendJob } from '../../tensor/compose/blend.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { runRows } from '../../tensor/rows/run-rows.ts'
import { type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'

// One image blended over another; the second is brought into the size and the channels of the first.

/** The second image in the shape of the first; only its batch may be another. */
function fitToFirst(first: Tensor, second: Tensor, work: PixelWork): Tensor {
  const aligned = alignChannels(first, second, work)
  const [, height, width] = first.shape
  const isSame = first.shape.every((size, axis) => size === aligned.shape[axis])
  return isSame ? aligned : upscale(aligned, { width, height, method: 'bicubic', crop: 'center' }, work)
}

/** Batches of different sizes meet only when one of them is a single image. */
function commonBatch(first: Tensor, second: Tensor): number {
  for (const axis of [0, 3]) {
    const [a, b] = [first.shape[axis], second.shape[axis]]
    if (a === b || (axis === 0 && (a === 1 || b === 1))) continue
    throw sizeMismatch(a, b, axis)
  }
  return Math.max(first.shape[0], second.shape[0])
}

export const imageBlend = defineNode({
  classType: 'ImageBlend',
  displayName: 'Blend Images',
  category: 'image/filters',
  description: 'Lays the second image over the first in one of six modes.',
  style: 'schema',
  required: {
    image1: image({}),
    image2: image({}),
    blend_factor: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
    blend_mode: combo(BLEND_MODES),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image1, image2 }) => costOf(image1.data.length + image2.data.length),
  run({ image1, image2, blend_factor: factor, blend_mode: mode }, context) {
    const second = fitToFirst(image1, image2, context)
    const batch = commonBatch(image1, second)
    const result = context.allocate([batch, ...image1.shape.slice(1)])
    const size = result.data.length / batch
    const blend = { a: image1.data, b: second.data, out: result.data, size, mode, factor }
    if (size > 0) runRows(toBlendJob(blend), context)
    return { outputs: [result] }
  },
})

// How often each level occurs in an image.

const LEVELS = 256

const histogram = (name: string) => ({ type: 'HISTOGRAM', name })

export const imageHistogram = defineNode({
  classType: 'ImageHistogram',
  displayName: 'Image Histogram',
  category: 'utilities',
  description: 'How often each of 256 levels occurs in the first image: colours together, brightness, and each colour.',
  style: 'schema',
  required: { image: image({}) },
  outputs: [histogram('rgb'), histogram('luminance'), histogram('red'), histogram('green'), histogram('blue')],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor }, { checkpoint }) {
    const { width, height, channels, data } = viewOf(tensor)
    const counts = [0, 1, 2, 3].map(() => new Int32Array(LEVELS))
    const [red, green, blue, luminance] = counts
    // Grey images count as three equal colours.
    const [second, third] = channels >= 3 ? [1, 2] : [0, 0]
    inBlocks(width * height, checkpoint, (start, end) => {
      for (let at = start * channels; at < end * channels; at += channels) {
        const [r, g, b] = [data[at], data[at + second], data[at + third]]
        red[byteOf(r)]++
        green[byteOf(g)]++
        blue[byteOf(b)]++
        luminance[byteOf(0.2126 * r + 0.7152 * g + 0.0722 * b)]++
      }
    })
    const rgb = red.map((count, level) => Math.floor((count + green[level] + blue[level]) / 3))
    return values([...rgb], [...luminance], [...red], [...green], [...blue])
  },
})

// Between red, green, blue and brightness with two colour differences, as JPEG has them; all within 0..1.

export const imageRgbToYuv = defineNode({
  classType: 'ImageRGBToYUV',
  displayName: 'Image RGB to YUV',
  category: 'image/color',
  description: 'Brightness and the two colour differences of images, each as a grey image.',
  style: 'schema',
  required: { image: image({}) },
  outputs: [
    { type: 'IMAGE', name: 'Y' },
    { type: 'IMAGE', name: 'U' },
    { type: 'IMAGE', name: 'V' },
  ],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 3),
  run({ image: tensor }, { allocate, checkpoint }) {
    requireRgb(tensor)
    const planes = [allocate(tensor.shape), allocate(tensor.shape), allocate(tensor.shape)]
    const [luma, blueness, redness] = planes.map((plane) => plane.data)
    const { data } = tensor
    inBlocks(data.length / 3, checkpoint, (start, end) => {
      for (let at = start * 3; at < end * 3; at += 3) {
        const y = 0.299 * data[at] + 0.587 * data[at + 1] + 0.114 * data[at + 2]
        const u = (data[at + 2] - y) * 0.564 + 0.5
        const v = (data[at] - y) * 0.713 + 0.5
        for (let c = at; c < at + 3; c++) {
          luma[c] = y
          blueness[c] = u
          redness[c] = v
        }
      }
    })
    return { outputs: planes }
  },
})

/** The mean over the channels of one pixel. */
function meanAt(data: Float32Array, pixel: number, channels: number): number {
  const at = pixel * channels
  if (channels === 3) return (data[at] + data[at + 1] + data[at + 2]) / 3
  let sum = 0
  for (let c = at; c < at + channels; c++) sum += data[c]
  return sum / channels
}

function requireSameSize(first: Tensor, others: readonly Tensor[]): void {
  for (const { shape } of others) {
    const axis = [0, 1, 2].find((index) => shape[index] !== first.shape[index])
    if (axis === undefined) continue
    const message =
      `Sizes of tensors must match except in dimension 3. Expected size ${first.shape[axis]} ` +
      `but got size ${shape[axis]} in the list`
    throw new NodeError('RuntimeError', message)
  }
}

export const imageYuvToRgb = defineNode({
  classType: 'ImageYUVToRGB',
  displayName: 'Image YUV to RGB',
  category: 'image/color',
  description: 'Puts brightness and two colour differences together to a colour image.',
  style: 'schema',
  required: { Y: image({}), U: image({}), V: image({}) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ Y }) => costOf(Y.data.length * 3),
  run({ Y, U, V }, context) {
    requireSameSize(Y, [U, V])
    const [batch, height, width, ofLuma] = Y.shape
    const [ofBlueness, ofRedness] = [U.shape[3], V.shape[3]]
    const result = context.allocate([batch, height, width, 3])
    const { data } = result
    inBlocks(batch * height * width, context.checkpoint, (start, end) => {
      for (let pixel = start, at = start * 3; pixel < end; pixel++, at += 3) {
        const y = meanAt(Y.data, pixel, ofLuma)
        const u = meanAt(U.data, pixel, ofBlueness) - 0.5
        const v = meanAt(V.data, pixel, ofRedness) - 0.5
        data[at] = clampToUnit(y + 1.403 * v)
        data[at + 1] = clampToUnit(y - 0.714 * v - 0.344 * u)
        data[at + 2] = clampToUnit(y + 1.773 * u)
      }
    })
    return { outputs: [result] }
  },
})

/** Refuses images without exactly three channels, in the words of the library that upstream asks. */
export function requireRgb({ shape }: Tensor): void {
  const [batch, height, width, channels] = shape
  if (channels === 3) return
  const seen = `torch.Size([${batch}, ${channels}, ${height}, ${width}])`
  throw new NodeError('ValueError', `Input size must have a shape of (*, 3, H, W). Got ${seen}`)
}

const facts = {
  style: 'schema',
  outputs: [{ type: 'IMAGE', name: 'images' }],
  experimental: true,
  cost: ({ images }: { readonly images: Tensor }) => costOf(images.data.length),
} as const

const factor = () => float({ default: 1, min: 0, max: 2 })

function adjusted(images: Tensor, { gain, offset }: { gain: number; offset: number }, work: PixelWork): Tensor {
  return changeValues(images, { kind: 'adjust', gain, offset }, work)
}

export const adjustBrightness = defineNode({
  ...facts,
  classType: 'AdjustBrightness',
  displayName: 'Adjust Brightness',
  category: 'image/adjustments',
  description: 'Multiplies every value by a factor.',
  required: { images: image({}), factor: factor() },
  run: ({ images, factor: gain }, context) => ({ outputs: [adjusted(images, { gain, offset: 0 }, context)] }),
})

const MIDDLE_GREY = 0.5

export const adjustContrast = defineNode({
  ...facts,
  classType: 'AdjustContrast',
  displayName: 'Adjust Contrast',
  category: 'image/adjustments',
  description: 'Moves every value away from middle grey, or towards it.',
  required: { images: image({}), factor: factor() },
  run: ({ images, factor: gain }, context) => ({
    outputs: [adjusted(images, { gain, offset: MIDDLE_GREY * (1 - gain) }, context)],
  }),
})

export const normalizeImages = defineNode({
  ...facts,
  classType: 'NormalizeImages',
  displayName: 'Normalize Image Colors',
  category: 'image/color',
  description: 'Subtracts a mean and divides by a deviation; the values may leave 0..1.',
  required: {
    images: image({}),
    mean: float({ advanced: true, default: 0.5, min: 0, max: 1 }),
    std: float({ advanced: true, default: 0.5, min: 0.001, max: 1 }),
  },
  run({ images, mean, std }, context) {
    return { outputs: [changeValues(images, { kind: 'normalize', mean, deviation: std }, context)] }
  },
})

export const imageInvert = defineNode({
  classType: 'ImageInvert',
  displayName: 'Invert Image Colors',
  category: 'image/color',
  description: 'The negative of an image; an alpha channel is inverted too.',
  style: 'classic',
  required: { image: image() },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor }, context) {
    return { outputs: [changeValues(tensor, { kind: 'invert' }, context)] }
  },
})

export const imageAddNoise = defineNode({
  classType: 'ImageAddNoise',
  displayName: 'Add Noise to Image',
  category: 'image/filters',
  description: 'Adds normal noise that a seed decides.',
  style: 'schema',
  required: {
    image: image({}),
    seed: wideInt({ default: 0, min: 0, max: MAX_SEED, control_after_generate: true }),
    strength: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 4),
  run({ image: tensor, seed, strength }, { allocate, checkpoint }) {
    const result = allocate(tensor.shape)
    const { data } = result
    fillTorchNormal(data, seed, checkpoint)
    inBlocks(data.length, checkpoint, (start, end) => {
      for (let i = start; i < end; i++) {
        const value = tensor.data[i] + Math.fround(strength * data[i])
        data[i] = value < 0 ? 0 : value > 1 ? 1 : value
      }
    })
    return { outputs: [result] }
  },
})
