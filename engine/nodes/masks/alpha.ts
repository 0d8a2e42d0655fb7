/** An image's alpha channel and a mask are each other's negative: alpha says what is there, a mask what is not. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { image, mask } from '../../node/input-kinds.ts'
import { setChannelCount, takeChannel } from '../../tensor/channels.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { asMaskBatch } from './mask-kinds.ts'

const COLORS = 3
const ALPHA = 3

export const splitImageWithAlpha = defineNode({
  classType: 'SplitImageWithAlpha',
  displayName: 'Split Image with Alpha',
  category: 'image/compositing',
  description: 'Separates the colours of an image from its transparency.',
  style: 'schema',
  required: { image: image({}) },
  outputs: [{ type: 'IMAGE' }, { type: 'MASK' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor }, context) {
    const [batch, height, width, channels] = tensor.shape
    if (channels > ALPHA) {
      const colors = setChannelCount(tensor, COLORS, context)
      return { outputs: [colors, takeChannel(tensor, { channel: ALPHA, isInverted: true }, context)] }
    }
    const opaque = context.allocate([batch, height, width])
    opaque.data.fill(0)
    return { outputs: [tensor, opaque] }
  },
})

export const joinImageWithAlpha = defineNode({
  classType: 'JoinImageWithAlpha',
  displayName: 'Join Image with Alpha',
  category: 'image/compositing',
  description: 'Gives an image a transparency: what the mask marks becomes transparent.',
  style: 'schema',
  required: { image: image({}), alpha: mask({}) },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length),
  run({ image: tensor, alpha }, context) {
    const [images, height, width, channels] = tensor.shape
    const masks = upscale(asMaskBatch(alpha), { width, height, method: 'bilinear', crop: 'disabled' }, context)
    const batch = Math.max(images, masks.shape[0])
    const colors = Math.min(channels, COLORS)
    const result = context.allocate([batch, height, width, colors + 1])
    const [from, weights, to] = [tensor.data, masks.data, result.data]
    const pixels = height * width
    for (let index = 0; index < batch; index++) {
      const [source, weight, target] = [(index % images) * pixels, (index % masks.shape[0]) * pixels, index * pixels]
      inBlocks(pixels, context.checkpoint, (start, end) => {
        for (let i = start; i < end; i++) {
          const at = (target + i) * (colors + 1)
          const color = (source + i) * channels
          to[at] = from[color]
          if (colors > 1) to[at + 1] = from[color + 1]
          if (colors > 2) to[at + 2] = from[color + 2]
          to[at + colors] = 1 - weights[weight + i]
        }
      })
    }
    return { outputs: [result] }
  },
})
