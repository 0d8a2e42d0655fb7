import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { choice, float, image, int } from '../../node/input-kinds.ts'
import { CROP_METHODS, roundHalfEven, UPSCALE_METHODS, upscale } from '../../tensor/resize/upscale.ts'

const MAX_SIDE = 16384
const side = () => int({ default: 512, min: 0, max: MAX_SIDE, step: 1 })

export const imageScale = defineNode({
  classType: 'ImageScale',
  displayName: 'Upscale Image',
  category: 'image/upscaling',
  description: 'Resizes images to a width and a height; 0 for one of them keeps the aspect.',
  style: 'classic',
  required: {
    image: image(),
    upscale_method: choice(UPSCALE_METHODS),
    width: side(),
    height: side(),
    crop: choice(CROP_METHODS),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, width, height }) => costOf(tensor.data.length + tensor.shape[0] * width * height * 3),
  run({ image: tensor, upscale_method: method, width, height, crop }, context) {
    if (width === 0 && height === 0) return { outputs: [tensor] }
    const [, oldHeight, oldWidth] = tensor.shape
    const size = {
      width: width === 0 ? Math.max(1, roundHalfEven((oldWidth * height) / oldHeight)) : width,
      height: height === 0 ? Math.max(1, roundHalfEven((oldHeight * width) / oldWidth)) : height,
    }
    return { outputs: [upscale(tensor, { ...size, method, crop }, context)] }
  },
})

export const imageScaleBy = defineNode({
  classType: 'ImageScaleBy',
  displayName: 'Upscale Image By',
  category: 'image/upscaling',
  description: 'Resizes images by a factor.',
  style: 'classic',
  required: {
    image: image(),
    upscale_method: choice(UPSCALE_METHODS),
    scale_by: float({ default: 1, min: 0.01, max: 8, step: 0.01 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor, scale_by: factor }) => costOf(tensor.data.length * Math.max(1, factor * factor)),
  run({ image: tensor, upscale_method: method, scale_by: factor }, context) {
    const [, oldHeight, oldWidth] = tensor.shape
    const size = { width: roundHalfEven(oldWidth * factor), height: roundHalfEven(oldHeight * factor) }
    return { outputs: [upscale(tensor, { ...size, method, crop: 'disabled' }, context)] }
  },
})
