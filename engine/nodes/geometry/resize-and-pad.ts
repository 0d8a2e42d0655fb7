import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { combo, image, int } from '../../node/input-kinds.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import { paste } from '../../tensor/window.ts'
import { MAX_RESOLUTION } from './target-size.ts'

const side = () => int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 })

export const resizeAndPadImage = defineNode({
  classType: 'ResizeAndPadImage',
  displayName: 'Resize And Pad Image',
  category: 'image/transform',
  description: 'Fits images into a frame without distorting them and fills what stays free with white or black.',
  style: 'schema',
  required: {
    image: image({}),
    target_width: side(),
    target_height: side(),
    padding_color: combo(['white', 'black'], { advanced: true }),
    interpolation: combo(['area', 'bicubic', 'nearest-exact', 'bilinear', 'lanczos'], { advanced: true }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, target_width: width, target_height: height }) =>
    costOf(tensor.data.length + width * height * 3),
  run(inputs, context) {
    const { image: tensor, target_width: width, target_height: height, padding_color: color } = inputs
    const [batch, oldHeight, oldWidth, channels] = tensor.shape
    const factor = Math.min(width / oldWidth, height / oldHeight)
    const fitted = { width: Math.trunc(oldWidth * factor), height: Math.trunc(oldHeight * factor) }
    const resized = upscale(tensor, { ...fitted, method: inputs.interpolation, crop: 'disabled' }, context)
    const canvas = context.allocate([batch, height, width, channels])
    canvas.data.fill(color === 'white' ? 1 : 0)
    const x = Math.floor((width - fitted.width) / 2)
    const y = Math.floor((height - fitted.height) / 2)
    paste(canvas, resized, { x, y, frameOf: (index) => index, checkpoint: context.checkpoint })
    return { outputs: [canvas] }
  },
})
