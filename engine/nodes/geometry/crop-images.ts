/** Rectangles cut out of every image: given by numbers, by a box, in the middle, or where a seed decides. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { boundingBox, image, int, MAX_RESOLUTION, MAX_SEED, wideInt } from '../../node/input-kinds.ts'
import { seedNumpy } from '../../random/numpy-legacy.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { cutWindow, sliceOf, throughBytes } from '../../tensor/window.ts'
import { previewImages } from '../files/preview-nodes.ts'

const side = () => int({ default: 512, min: 1, max: MAX_RESOLUTION, step: 1 })
const offset = () => int({ default: 0, min: 0, max: MAX_RESOLUTION, step: 1 })

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
  run({ image: tensor, width, height, x: left, y: top }, context) {
    const [, oldHeight, oldWidth] = tensor.shape
    const x = Math.min(left, oldWidth - 1)
    const y = Math.min(top, oldHeight - 1)
    const window = { x, y, width: Math.min(width, oldWidth - x), height: Math.min(height, oldHeight - y) }
    return { outputs: [cutWindow(tensor, window, context)] }
  },
})

export const imageCropV2 = defineNode({
  classType: 'ImageCropV2',
  displayName: 'Crop Image',
  category: 'image/transform',
  description: 'Cuts a box out of every image; it comes out smaller where the image ends.',
  style: 'schema',
  hasIntermediateOutput: true,
  required: { image: image({}), crop_region: boundingBox({ component: 'ImageCrop' }) },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  async run({ image: tensor, crop_region: box }, context) {
    const [, height, width] = tensor.shape
    const left = Math.min(box.x, width - 1)
    const top = Math.min(box.y, height - 1)
    const across = sliceOf(left, left + box.width, width)
    const down = sliceOf(top, top + box.height, height)
    const window = { x: across.from, y: down.from, width: across.count, height: down.count }
    const cropped = cutWindow(tensor, window, context)
    const images = await previewImages(cropped, { texts: [] }, context)
    return { outputs: [cropped], report: { images, animated: [{ kind: 'value', value: false }] } }
  },
})

const cropSide = () => int({ default: 512, min: 1, max: 8192 })

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
  required: { images: image({}), width: cropSide(), height: cropSide() },
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
    width: cropSide(),
    height: cropSide(),
    seed: wideInt({ default: 0, min: 0, max: MAX_SEED }),
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
