/** Resizing by one edge, on 8-bit pixels and with truncated sizes: older relatives of the scale nodes. */
import { defineNode } from '../../node/define-node.ts'
import { image, int } from '../../node/input-kinds.ts'
import { upscale } from '../../tensor/resize/upscale.ts'
import type { PixelWork, Tensor } from '../../tensor/tensor.ts'
import type { Size } from './target-size.ts'

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
