/** An image of a given size, and the size of an image. */
import { costOf, defineNode, values } from '../../node/define-node.ts'
import { image, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import { inBlocks } from '../../tensor/map-pixels.ts'

export const emptyImage = defineNode({
  classType: 'EmptyImage',
  displayName: 'Empty Image',
  category: 'image',
  description: 'A batch of images of one colour.',
  style: 'classic',
  required: {
    width: int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 }),
    height: int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 }),
    batch_size: int({ default: 1, min: 1, max: 4096 }),
    color: int({ default: 0, min: 0, max: 0xffffff, step: 1, display: 'color' }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ width, height, batch_size: batch }) => costOf(width * height * batch * 3),
  run({ width, height, batch_size: batch, color }, { allocate, checkpoint }) {
    const result = allocate([batch, height, width, 3])
    const channels = [(color >> 16) & 0xff, (color >> 8) & 0xff, color & 0xff].map((value) => value / 255)
    const [red, green, blue] = channels
    inBlocks(batch * height * width, checkpoint, (start, end) => {
      if (red === green && green === blue) {
        result.data.fill(red, start * 3, end * 3)
        return
      }
      for (let at = start * 3; at < end * 3; at += 3) {
        result.data[at] = red
        result.data[at + 1] = green
        result.data[at + 2] = blue
      }
    })
    return { outputs: [result] }
  },
})

export const getImageSize = defineNode({
  classType: 'GetImageSize',
  displayName: 'Get Image Size',
  category: 'image',
  description: 'Width, height and number of the images.',
  style: 'schema',
  required: { image: image({}) },
  hidden: { unique_id: 'UNIQUE_ID' },
  outputs: [
    { type: 'INT', name: 'width' },
    { type: 'INT', name: 'height' },
    { type: 'INT', name: 'batch_size' },
  ],
  cost: 'inline',
  run({ image: tensor }, context) {
    const [batch, height, width] = tensor.shape
    context.text(`width: ${width}, height: ${height}\n batch size: ${batch}`)
    return values(width, height, batch)
  },
})
