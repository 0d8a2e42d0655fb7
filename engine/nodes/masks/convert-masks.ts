/** Between masks and images: one channel as a mask, a mask as grey, the pixels of one colour. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { combo, image, int, mask } from '../../node/input-kinds.ts'
import { NodeError } from '../../node/node-error.ts'
import { takeChannel } from '../../tensor/channels.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import { asMaskBatch } from './mask-kinds.ts'

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
