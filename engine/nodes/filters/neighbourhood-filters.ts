/** Filters that look at the pixels around each pixel: blur, sharpening, morphology, edges. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { combo, float, image, int } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { sliceBatch } from '../../tensor/batch-axis.ts'
import { inBlocks } from '../../tensor/channels.ts'
import { fromYuv, toYuv } from '../../tensor/codec/intra-coding.ts'
import { quantiserFor, throughKeyFrame } from '../../tensor/codec/key-frame.ts'
import { canny as findEdges } from '../../tensor/filters/canny-edges.ts'
import { slidingExtreme } from '../../tensor/filters/dilate.ts'
import { filterSeparable, gaussianHalf } from '../../tensor/filters/separable-filter.ts'
import { type PixelWork, type Tensor, viewOf } from '../../tensor/tensor.ts'

// Makes pictures look as if they came out of a video, which is what the model was trained on. Upstream sends them through
// x264; here the loss of a key frame is computed in place, so that no encoder has to be installed and the result is the same
// everywhere. It is of the same kind and size as x264's, not equal to it.

export const ltxvPreprocess = defineNode({
  classType: 'LTXVPreprocess',
  displayName: 'LTXV Preprocess',
  category: 'video/preprocessors',
  description: 'Gives images the traces of video compression, the more the higher the number.',
  style: 'schema',
  required: { image: image({}), img_compression: int({ default: 35, min: 0, max: 100 }) },
  outputs: [{ type: 'IMAGE', name: 'output_image' }],
  cost: ({ img_compression: rateFactor }) => (rateFactor === 0 ? 'inline' : 'compute'),
  run({ image: tensor, img_compression: rateFactor }, { allocate, checkpoint, progress }) {
    if (rateFactor === 0) return { outputs: [tensor] }
    const { batch, height, width, channels } = viewOf(tensor)
    // Four pixels share one colour, so an odd row or column is dropped.
    const [evenWidth, evenHeight] = [width - (width % 2), height - (height % 2)]
    if (evenWidth === 0 || evenHeight === 0 || channels !== 3) {
      const shape = `[${tensor.shape.join(', ')}]`
      throw new NodeError('ValueError', `images of ${shape} cannot be compressed: two pixels a side and RGB are needed`)
    }
    const result = allocate([batch, evenHeight, evenWidth, 3])
    for (let index = 0; index < batch; index++) {
      const source = { data: sliceBatch(tensor, index, 1).data, rowStride: width * channels, channels }
      const picture = toYuv(source, { width: evenWidth, height: evenHeight, checkpoint })
      const coded = throughKeyFrame(picture, quantiserFor(rateFactor), checkpoint)
      fromYuv(coded, sliceBatch(result, index, 1).data, checkpoint)
      if (batch > 1) progress(index + 1, batch)
    }
    return { outputs: [result] }
  },
})

const SHARPEN_GAIN = 10

export const imageBlur = defineNode({
  classType: 'ImageBlur',
  displayName: 'Blur Image',
  category: 'image/filters',
  description: 'Blurs images with a bell of the given radius.',
  style: 'schema',
  required: {
    image: image({}),
    blur_radius: int({ default: 1, min: 1, max: 31, step: 1 }),
    sigma: float({ default: 1, min: 0.1, max: 10, step: 0.1 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, blur_radius: radius }) => costOf(tensor.data.length * (radius + 1)),
  run({ image: tensor, blur_radius: radius, sigma }, context) {
    if (radius === 0) return { outputs: [tensor] }
    return { outputs: [filterSeparable(tensor, { half: gaussianHalf(radius, sigma) }, context)] }
  },
})

export const imageSharpen = defineNode({
  classType: 'ImageSharpen',
  displayName: 'Sharpen Image',
  category: 'image/filters',
  description: 'Makes edges within the given radius stand out.',
  style: 'schema',
  required: {
    image: image({}),
    sharpen_radius: int({ advanced: true, default: 1, min: 1, max: 31, step: 1 }),
    sigma: float({ advanced: true, default: 1, min: 0.1, max: 10, step: 0.01 }),
    alpha: float({ advanced: true, default: 1, min: 0, max: 5, step: 0.01 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, sharpen_radius: radius }) => costOf(tensor.data.length * (radius + 1)),
  run({ image: tensor, sharpen_radius: radius, sigma, alpha }, context) {
    if (radius === 0) return { outputs: [tensor] }
    const filter = { half: gaussianHalf(radius, sigma), sharpenBy: SHARPEN_GAIN * alpha }
    return { outputs: [filterSeparable(tensor, filter, context)] }
  },
})

const OPERATIONS = ['erode', 'dilate', 'open', 'close', 'gradient', 'bottom_hat', 'top_hat'] as const
type Operation = (typeof OPERATIONS)[number]

type Step = (source: Tensor, size: number, work: PixelWork) => Tensor

const squareOf = (size: number) => ({ size, origin: Math.floor(size / 2) })
const erode: Step = (source, size, work) => slidingExtreme(source, { kind: 'min', ...squareOf(size) }, work)
const dilate: Step = (source, size, work) => slidingExtreme(source, { kind: 'max', ...squareOf(size) }, work)
const open: Step = (source, size, work) => dilate(erode(source, size, work), size, work)
const close: Step = (source, size, work) => erode(dilate(source, size, work), size, work)

function difference(a: Tensor, b: Tensor, { allocate, checkpoint }: PixelWork): Tensor {
  const result = allocate(a.shape)
  inBlocks(result.data.length, checkpoint, (start, end) => {
    for (let i = start; i < end; i++) result.data[i] = a.data[i] - b.data[i]
  })
  return result
}

const STEPS: Readonly<Record<Operation, Step>> = {
  erode,
  dilate,
  open,
  close,
  gradient: (source, size, work) => difference(dilate(source, size, work), erode(source, size, work), work),
  bottom_hat: (source, size, work) => difference(close(source, size, work), source, work),
  top_hat: (source, size, work) => difference(source, open(source, size, work), work),
}

export const morphology = defineNode({
  classType: 'Morphology',
  displayName: 'Apply Morphology',
  category: 'image/filters',
  description: 'Grows or shrinks bright parts by a square, and what can be made of the two.',
  style: 'schema',
  required: {
    image: image({}),
    operation: combo(OPERATIONS),
    kernel_size: int({ default: 3, min: 3, max: 999, step: 1 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 8),
  run: ({ image: tensor, operation, kernel_size: size }, context) => ({
    outputs: [STEPS[operation](tensor, size, context)],
  }),
})

const threshold = (value: number) => float({ default: value, min: 0.01, max: 0.99, step: 0.01 })

function requireGreyOrRgb({ shape: [batch, height, width, channels] }: Tensor): void {
  if (channels === 1 || channels === 3) return
  const message =
    'Given groups=1, weight of size [8, 1, 3, 3], expected input' +
    `[${batch}, ${channels}, ${height}, ${width}] to have 1 channels, but got ${channels} channels instead`
  throw new NodeError('RuntimeError', message)
}

export const canny = defineNode({
  classType: 'Canny',
  displayName: 'Detect Edges (Canny)',
  category: 'image/filters',
  description: 'White lines where brightness changes: strong ones, and weaker ones that continue them.',
  style: 'schema',
  required: { image: image({}), low_threshold: threshold(0.4), high_threshold: threshold(0.8) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 8),
  run({ image: tensor, low_threshold: low, high_threshold: high }, context) {
    if (low > high) {
      const message = `Invalid input thresholds. low_threshold should be smaller than the high_threshold. Got: ${low}>${high}`
      throw new NodeError('kornia.core.exceptions.BaseError', message)
    }
    requireGreyOrRgb(tensor)
    return { outputs: [findEdges(tensor, { low, high }, context)] }
  },
})
