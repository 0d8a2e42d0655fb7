import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { image } from '../../node/input-kinds.ts'
import { mapBlocks } from '../../tensor/map-pixels.ts'

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
    const inverted = mapBlocks(tensor, context, (from, to, { start, end }) => {
      for (let i = start; i < end; i++) to[i] = 1 - from[i]
    })
    return { outputs: [inverted] }
  },
})
