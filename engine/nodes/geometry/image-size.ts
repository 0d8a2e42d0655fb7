import { defineNode, values } from '../../node/define-node.ts'
import { image } from '../../node/input-kinds.ts'

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
