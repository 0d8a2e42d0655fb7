/** Resizing by one edge (on 8-bit pixels, sizes truncated) or into a frame that is filled up: relatives of the scale nodes. */
import { costOf, defineNode } from '../../node/define-node.ts'
import { combo, image, int, MAX_RESOLUTION } from '../../node/input-kinds.ts'
import type { Size } from '../../tensor/resize/target-size.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import { paste } from '../../tensor/window.ts'

const edge = (length: number) => int({ default: length, min: 1, max: 8192 })

const facts = {
  category: 'image/transform',
  style: 'schema',
  outputs: [{ type: 'IMAGE', name: 'images' }],
  deprecated: true,
  experimental: true,
  cost: 'compute',
} as const

function widthTo({ width, height }: Size, length: number): Size {
  return { width: length, height: Math.trunc(height * (length / width)) }
}

function heightTo({ width, height }: Size, length: number): Size {
  return { width: Math.trunc(width * (length / height)), height: length }
}

function resized(images: Tensor, size: Size, work: PixelWork) {
  return { outputs: [upscale(images, { ...size, method: 'lanczos', crop: 'disabled' }, work)] }
}

export const resizeImagesByShorterEdge = defineNode({
  ...facts,
  classType: 'ResizeImagesByShorterEdge',
  displayName: 'Resize Images by Shorter Edge (DEPRECATED)',
  description: 'Resizes images so that their shorter edge has a given length.',
  required: { images: image({}), shorter_edge: edge(512) },
  run({ images, shorter_edge: length }, context) {
    const [, height, width] = images.shape
    const toLength = width < height ? widthTo : heightTo
    return resized(images, toLength({ width, height }, length), context)
  },
})

export const resizeImagesByLongerEdge = defineNode({
  ...facts,
  classType: 'ResizeImagesByLongerEdge',
  displayName: 'Resize Images by Longer Edge (DEPRECATED)',
  description: 'Resizes images so that their longer edge has a given length.',
  required: { images: image({}), longer_edge: edge(1024) },
  run({ images, longer_edge: length }, context) {
    const [, height, width] = images.shape
    const toLength = width > height ? widthTo : heightTo
    return resized(images, toLength({ width, height }, length), context)
  },
})

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
