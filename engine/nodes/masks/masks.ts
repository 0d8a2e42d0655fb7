/** Masks made, changed by themselves, and joined into batches. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { autogrow, defineDynamicNode } from '../../node/dynamic-node.ts'
import { boolean, combo, float, image, int, MAX_RESOLUTION, mask } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { concatenate, reshape, sliceBatch } from '../../tensor/batch-axis.ts'
import { changeValues, cutWindow, inBlocks, mapBlocks, takeChannel } from '../../tensor/channels.ts'
import { createDilation } from '../../tensor/filters/dilate.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { Tensor } from '../../tensor/tensor.ts'

// What mask nodes share: numbers that they declare alike, and masks with their batch axis.

export const side = () => int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 })
export const offset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 1 })
/** Where something is laid or cut. */
export const position = () => ({ x: offset(), y: offset() })

/** A mask with its batch axis: a bare plane counts as a batch of one. */
export function asMaskBatch(mask: Tensor): Tensor {
  return mask.shape.length === 3 ? mask : reshape(mask, [1, ...mask.shape])
}

const facts = { category: 'image/mask', style: 'schema', outputs: [{ type: 'MASK' }] } as const

export const solidMask = defineNode({
  ...facts,
  classType: 'SolidMask',
  displayName: 'Create Solid Mask',
  description: 'A mask of one value.',
  required: { value: float({ default: 1, min: 0, max: 1, step: 0.01 }), width: side(), height: side() },
  cost: ({ width, height }) => costOf(width * height),
  run({ value, width, height }, { allocate, checkpoint }) {
    const result = allocate([1, height, width])
    inBlocks(result.data.length, checkpoint, (start, end) => result.data.fill(value, start, end))
    return { outputs: [result] }
  },
})

export const invertMask = defineNode({
  ...facts,
  classType: 'InvertMask',
  displayName: 'Invert Mask',
  description: 'Exchanges what is masked and what is not.',
  required: { mask: mask({}) },
  cost: ({ mask: tensor }) => costOf(tensor.data.length),
  run({ mask: tensor }, context) {
    return { outputs: [changeValues(tensor, { kind: 'invert' }, context)] }
  },
})

export const thresholdMask = defineNode({
  ...facts,
  classType: 'ThresholdMask',
  displayName: 'Threshold Mask',
  description: 'Makes a mask hard: 1 above a value, 0 up to it.',
  required: { mask: mask({}), value: float({ default: 0.5, min: 0, max: 1, step: 0.01 }) },
  cost: ({ mask: tensor }) => costOf(tensor.data.length),
  run({ mask: tensor, value }, context) {
    // Compared in single precision, or a mask of exactly this value would count as above it.
    const limit = Math.fround(value)
    const hard = mapBlocks(tensor, context, (from, to, { start, end }) => {
      for (let i = start; i < end; i++) to[i] = from[i] > limit ? 1 : 0
    })
    return { outputs: [hard] }
  },
})

export const cropMask = defineNode({
  ...facts,
  classType: 'CropMask',
  displayName: 'Crop Mask',
  description: 'Cuts a rectangle out of a mask; it comes out smaller, or empty, where the mask ends.',
  required: { mask: mask({}), ...position(), width: side(), height: side() },
  cost: ({ mask: tensor }) => costOf(tensor.data.length),
  run({ mask: tensor, x, y, width, height }, context) {
    const masks = asMaskBatch(tensor)
    const [, oldHeight, oldWidth] = masks.shape
    const window = {
      x: Math.min(x, oldWidth),
      y: Math.min(y, oldHeight),
      width: Math.max(0, Math.min(width, oldWidth - x)),
      height: Math.max(0, Math.min(height, oldHeight - y)),
    }
    return { outputs: [cutWindow(masks, window, context)] }
  },
})

/** Factors along one axis: rising from `before` on the near end, falling over `after` on the far end. */
function ramp(length: number, before: number, after: number): Float64Array {
  const factors = new Float64Array(length).fill(1)
  const [near, far] = [Math.min(before, length), Math.min(after, length)]
  for (let i = 0; i < near; i++) factors[i] *= (i + 1) / near
  for (let i = 0; i < far; i++) factors[length - 1 - i] *= (i + 1) / far
  return factors
}

export const featherMask = defineNode({
  ...facts,
  classType: 'FeatherMask',
  displayName: 'Feather Mask',
  description: 'Fades a mask out towards its borders.',
  required: { mask: mask({}), left: offset(), top: offset(), right: offset(), bottom: offset() },
  cost: ({ mask: tensor }) => costOf(tensor.data.length),
  run({ mask: tensor, left, top, right, bottom }, { allocate, checkpoint }) {
    const [batch, height, width] = asMaskBatch(tensor).shape
    const result = allocate([batch, height, width])
    const [from, to] = [tensor.data, result.data]
    const columns = ramp(width, left, right)
    const rows = ramp(height, top, bottom)
    for (let row = 0; row < batch * height; row++) {
      checkpoint()
      const factor = rows[row % height]
      for (let x = 0, at = row * width; x < width; x++) to[at + x] = from[at + x] * columns[x] * factor
    }
    return { outputs: [result] }
  },
})

export const growMask = defineNode({
  ...facts,
  classType: 'GrowMask',
  displayName: 'Grow Mask',
  description: 'Makes masked regions larger, or smaller for a negative number of pixels.',
  required: {
    mask: mask({}),
    expand: int({ default: 0, min: -MAX_RESOLUTION, max: MAX_RESOLUTION, step: 1 }),
    tapered_corners: boolean({ advanced: true, default: true }),
  },
  // Each doubling of the radius is one more pass.
  cost: ({ mask: tensor, expand }) => costOf(tensor.data.length * (2 + Math.ceil(Math.log2(1 + Math.abs(expand))))),
  run({ mask: tensor, expand, tapered_corners: isTapered }, context) {
    const masks = asMaskBatch(tensor)
    if (expand === 0 || masks.data.length === 0) return { outputs: [masks] }
    const [batch, height, width] = masks.shape
    const grow = createDilation({ width, height, radius: Math.abs(expand), isTapered, isErosion: expand < 0 }, context)
    const result = context.allocate(masks.shape)
    for (let index = 0; index < batch; index++) {
      grow(sliceBatch(masks, index, 1).data, sliceBatch(result, index, 1).data)
    }
    return { outputs: [result] }
  },
})

export const batchMasks = defineDynamicNode({
  classType: 'BatchMasksNode',
  displayName: 'Batch Masks',
  category: 'image/mask',
  description: 'Joins masks into one batch, all in the size of the first.',
  style: 'schema',
  required: {
    masks: autogrow({ member: 'mask', kind: mask({}), naming: { prefix: 'mask', max: 50 }, min: 1 }),
  },
  outputs: [{ type: 'MASK' }],
  cost: ({ masks }) => costOf(Object.values(masks).reduce((sum, tensor) => sum + tensor.data.length, 0)),
  run({ masks }, context) {
    const batches = Object.values(masks).map(asMaskBatch)
    const [, height, width] = batches[0].shape
    const fitted = batches.map((batch) =>
      upscale(batch, { width, height, method: 'bilinear', crop: 'center' }, context),
    )
    return { outputs: [concatenate(fitted, context)] }
  },
})

// Between masks and images: one channel as a mask, a mask as grey, the pixels of one colour.

export const maskToImage = defineNode({
  classType: 'MaskToImage',
  displayName: 'Convert Mask to Image',
  category: 'image/mask',
  description: 'Shows a mask as a grey image.',
  style: 'schema',
  required: { mask: mask({}) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ mask: tensor }) => costOf(tensor.data.length * 3),
  run({ mask: tensor }, { allocate, checkpoint }) {
    const [from, result] = [tensor.data, allocate([...asMaskBatch(tensor).shape, 3])]
    const to = result.data
    inBlocks(from.length, checkpoint, (start, end) => {
      for (let pixel = start, at = start * 3; pixel < end; pixel++, at += 3) {
        const value = from[pixel]
        to[at] = value
        to[at + 1] = value
        to[at + 2] = value
      }
    })
    return { outputs: [result] }
  },
})

const CHANNELS = ['red', 'green', 'blue', 'alpha'] as const

export const imageToMask = defineNode({
  classType: 'ImageToMask',
  displayName: 'Convert Image to Mask',
  category: 'image/mask',
  description: 'Takes one channel of an image as a mask.',
  style: 'schema',
  required: { image: image({}), channel: combo(CHANNELS) },
  outputs: [{ type: 'MASK' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, channel: name }, context) {
    const channel = CHANNELS.indexOf(name)
    const count = tensor.shape[3]
    if (channel >= count) {
      throw new NodeError('IndexError', `index ${channel} is out of bounds for dimension 3 with size ${count}`)
    }
    return { outputs: [takeChannel(tensor, { channel }, context)] }
  },
})

/** Whether a float rounds to this byte; a half rounds to the even neighbour. */
function roundsTo(value: number, byte: number): boolean {
  const scaled = Math.fround(255 * (value < 0 ? 0 : value > 1 ? 1 : value))
  const distance = Math.abs(scaled - byte)
  return distance < 0.5 || (distance === 0.5 && byte % 2 === 0)
}

export const imageColorToMask = defineNode({
  classType: 'ImageColorToMask',
  displayName: 'Convert Image Color to Mask',
  category: 'image/mask',
  description: 'Marks the pixels that have exactly one colour.',
  style: 'schema',
  required: {
    image: image({}),
    color: int({ default: 0, min: 0, max: 0xffffff, step: 1, display: 'number' }),
  },
  outputs: [{ type: 'MASK' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, color }, { allocate, checkpoint }) {
    const [batch, height, width, channels] = tensor.shape
    if (channels < 3) {
      throw new NodeError('IndexError', `index ${channels} is out of bounds for dimension 3 with size ${channels}`)
    }
    const result = allocate([batch, height, width])
    const [from, to] = [tensor.data, result.data]
    const [red, green, blue] = [(color >> 16) & 0xff, (color >> 8) & 0xff, color & 0xff]
    inBlocks(to.length, checkpoint, (start, end) => {
      for (let pixel = start, at = start * channels; pixel < end; pixel++, at += channels) {
        const isSame = roundsTo(from[at], red) && roundsTo(from[at + 1], green) && roundsTo(from[at + 2], blue)
        to[pixel] = isSame ? 1 : 0
      }
    })
    return { outputs: [result] }
  },
})
