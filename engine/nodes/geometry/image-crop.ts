import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { image, int } from '../../node/input-kinds.ts'

const MAX_SIDE = 16384
const side = () => int({ default: 512, min: 1, max: MAX_SIDE, step: 1 })
const offset = () => int({ default: 0, min: 0, max: MAX_SIDE, step: 1 })

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
  run({ image: tensor, width, height, x, y }, { allocate, checkpoint }) {
    const [batch, oldHeight, oldWidth, channels] = tensor.shape
    const left = Math.min(x, oldWidth - 1)
    const top = Math.min(y, oldHeight - 1)
    const newWidth = Math.min(width, oldWidth - left)
    const newHeight = Math.min(height, oldHeight - top)
    const result = allocate([batch, newHeight, newWidth, channels])
    const rowLength = newWidth * channels
    for (let row = 0; row < batch * newHeight; row++) {
      checkpoint()
      const sourceRow = Math.floor(row / newHeight) * oldHeight + top + (row % newHeight)
      const from = (sourceRow * oldWidth + left) * channels
      result.data.set(tensor.data.subarray(from, from + rowLength), row * rowLength)
    }
    return { outputs: [result] }
  },
})
