/** Crops for training data: in the middle, or at a place that a seed decides. Both work on 8-bit pixels. */
import { defineNode } from '../../node/define-node.ts'
import { costOf } from '../../node/image-cost.ts'
import { image, int, wideInt } from '../../node/input-kinds.ts'
import { seedNumpy } from '../../random/numpy-legacy.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { cutWindow, throughBytes } from '../../tensor/window.ts'

const LARGEST_SEED = 2n ** 64n - 1n
const side = () => int({ default: 512, min: 1, max: 8192 })

const facts = {
  category: 'image/transform',
  style: 'schema',
  outputs: [{ type: 'IMAGE', name: 'images' }],
  experimental: true,
} as const

interface Cut {
  readonly left: number
  readonly top: number
  readonly width: number
  readonly height: number
}

/** Never larger than the image: a crop that does not fit is cut off. */
function cut(images: Tensor, { left, top, width, height }: Cut, work: PixelWork) {
  const [, oldHeight, oldWidth] = images.shape
  const window = { x: left, y: top, width: Math.min(width, oldWidth - left), height: Math.min(height, oldHeight - top) }
  return { outputs: [throughBytes(cutWindow(images, window, work), work)] }
}

export const centerCropImages = defineNode({
  ...facts,
  classType: 'CenterCropImages',
  displayName: 'Crop Image (Center)',
  description: 'Cuts the middle out of every image.',
  required: { images: image({}), width: side(), height: side() },
  cost: ({ images }) => costOf(images.data.length),
  run({ images, width, height }, context) {
    const [, oldHeight, oldWidth] = images.shape
    const left = Math.max(0, Math.floor((oldWidth - width) / 2))
    const top = Math.max(0, Math.floor((oldHeight - height) / 2))
    return cut(images, { left, top, width, height }, context)
  },
})

export const randomCropImages = defineNode({
  ...facts,
  classType: 'RandomCropImages',
  displayName: 'Crop Image (Random)',
  description: 'Cuts every image at a place drawn from the seed, the same for all of a batch.',
  required: {
    images: image({}),
    width: side(),
    height: side(),
    seed: wideInt({ default: 0, min: 0, max: LARGEST_SEED }),
  },
  cost: ({ images }) => costOf(images.data.length),
  run({ images, width, height, seed }, context) {
    const [, oldHeight, oldWidth] = images.shape
    // Upstream seeds anew for each frame, so one draw stands for all of them.
    const draw = seedNumpy(seed)
    const left = draw.bounded(Math.max(0, oldWidth - width))
    const top = draw.bounded(Math.max(0, oldHeight - height))
    return cut(images, { left, top, width, height }, context)
  },
})
