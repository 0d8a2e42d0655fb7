/** Every value changed by itself: brightness, contrast, normalisation, negatives and noise. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { float, image, MAX_SEED, wideInt } from '../../node/input-kinds.ts'
import { fillTorchNormal } from '../../random/torch-normal.ts'
import { changeValues, inBlocks } from '../../tensor/map-pixels.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'

const facts = {
  style: 'schema',
  outputs: [{ type: 'IMAGE', name: 'images' }],
  experimental: true,
  cost: ({ images }: { readonly images: Tensor }) => costOf(images.data.length),
} as const

const factor = () => float({ default: 1, min: 0, max: 2 })

function adjusted(images: Tensor, { gain, offset }: { gain: number; offset: number }, work: PixelWork): Tensor {
  return changeValues(images, { kind: 'adjust', gain, offset }, work)
}

export const adjustBrightness = defineNode({
  ...facts,
  classType: 'AdjustBrightness',
  displayName: 'Adjust Brightness',
  category: 'image/adjustments',
  description: 'Multiplies every value by a factor.',
  required: { images: image({}), factor: factor() },
  run: ({ images, factor: gain }, context) => ({ outputs: [adjusted(images, { gain, offset: 0 }, context)] }),
})

const MIDDLE_GREY = 0.5

export const adjustContrast = defineNode({
  ...facts,
  classType: 'AdjustContrast',
  displayName: 'Adjust Contrast',
  category: 'image/adjustments',
  description: 'Moves every value away from middle grey, or towards it.',
  required: { images: image({}), factor: factor() },
  run: ({ images, factor: gain }, context) => ({
    outputs: [adjusted(images, { gain, offset: MIDDLE_GREY * (1 - gain) }, context)],
  }),
})

export const normalizeImages = defineNode({
  ...facts,
  classType: 'NormalizeImages',
  displayName: 'Normalize Image Colors',
  category: 'image/color',
  description: 'Subtracts a mean and divides by a deviation; the values may leave 0..1.',
  required: {
    images: image({}),
    mean: float({ advanced: true, default: 0.5, min: 0, max: 1 }),
    std: float({ advanced: true, default: 0.5, min: 0.001, max: 1 }),
  },
  run({ images, mean, std }, context) {
    return { outputs: [changeValues(images, { kind: 'normalize', mean, deviation: std }, context)] }
  },
})

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
    return { outputs: [changeValues(tensor, { kind: 'invert' }, context)] }
  },
})

export const imageAddNoise = defineNode({
  classType: 'ImageAddNoise',
  displayName: 'Add Noise to Image',
  category: 'image/filters',
  description: 'Adds normal noise that a seed decides.',
  style: 'schema',
  required: {
    image: image({}),
    seed: wideInt({ default: 0, min: 0, max: MAX_SEED, control_after_generate: true }),
    strength: float({ default: 0.5, min: 0, max: 1, step: 0.01 }),
  },
  outputs: [{ type: 'IMAGE' }],
  cost: ({ image: tensor }) => costOf(tensor.data.length * 4),
  run({ image: tensor, seed, strength }, { allocate, checkpoint }) {
    const result = allocate(tensor.shape)
    const { data } = result
    fillTorchNormal(data, seed, checkpoint)
    inBlocks(data.length, checkpoint, (start, end) => {
      for (let i = start; i < end; i++) {
        const value = tensor.data[i] + Math.fround(strength * data[i])
        data[i] = value < 0 ? 0 : value > 1 ? 1 : value
      }
    })
    return { outputs: [result] }
  },
})
