import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { float, image, int } from '../../node/input-kinds.ts'
import { filterSeparable, gaussianHalf } from '../../tensor/filters/separable-filter.ts'

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
