/**
 * The one resize behind most nodes (ComfyUI's `common_upscale`): five methods, and an optional crop to the target's aspect
 * before it. Works on images and masks alike.
 */
import { roundHalfEven } from '../../../lib/python/values.ts'
import { NodeError } from '../../node/node-error.ts'
import { narrow, reshape } from '../batch-axis.ts'
import type { Window } from '../channels.ts'
import { runRows } from '../rows/run-rows.ts'
import { elementCount, type PixelWork, type Tensor, viewOf } from '../tensor.ts'
import { bislerp } from './bislerp.ts'
import { toResizeJob, type UpscaleMethod } from './resize-rows.ts'

export const CROP_METHODS = ['disabled', 'center'] as const
export type CropMethod = (typeof CROP_METHODS)[number]

interface UpscaleOptions {
  readonly width: number
  readonly height: number
  readonly method: UpscaleMethod
  readonly crop: CropMethod
}

/** The part of the image that has the target's aspect, around the centre. */
function cropWindow(size: { width: number; height: number }, { width, height, crop }: UpscaleOptions): Window {
  const oldAspect = size.width / size.height
  const newAspect = width / height
  let [x, y] = [0, 0]
  if (crop === 'center' && oldAspect > newAspect) {
    x = roundHalfEven((size.width - size.width * (newAspect / oldAspect)) / 2)
  } else if (crop === 'center' && oldAspect < newAspect) {
    y = roundHalfEven((size.height - size.height * (oldAspect / newAspect)) / 2)
  }
  return { x, y, width: size.width - 2 * x, height: size.height - 2 * y }
}

function checkSizes(from: Window, { width, height, method }: UpscaleOptions): void {
  // A mean over nothing is the one resize that PyTorch lets end in an empty image.
  const hasTarget = (width > 0 && height > 0) || method === 'area'
  if (from.width > 0 && from.height > 0 && hasTarget) return
  const sizes = `input (H: ${from.height}, W: ${from.width}) output (H: ${height}, W: ${width})`
  throw new NodeError('RuntimeError', `Input and output sizes should be greater than 0, but got ${sizes}`)
}

export function upscale(tensor: Tensor, options: UpscaleOptions, work: PixelWork): Tensor {
  const { width, height, method } = options
  const view = viewOf(tensor)
  const from = cropWindow(view, options)
  checkSizes(from, options)
  const isWhole = from.width === view.width && from.height === view.height
  // Only Lanczos changes an image that keeps its size, because it goes through 8 bit.
  if (isWhole && from.width === width && from.height === height && method !== 'lanczos') return tensor
  const { batch, channels } = view
  const result = work.allocate(tensor.shape.length === 4 ? [batch, height, width, channels] : [batch, height, width])
  const rowStride = view.width * channels
  const source = {
    data: view.data,
    start: from.y * rowStride + from.x * channels,
    rowStride,
    planeStride: view.height * rowStride,
    width: from.width,
    height: from.height,
    channels,
  }
  if (result.data.length > 0) runRows(toResizeJob(method, source, { data: result.data, width, height }), work)
  return result
}

// Sizes that keep an aspect, rounded as Python rounds.

export interface Size {
  readonly width: number
  readonly height: number
}

export function longerSideTo({ width, height }: Size, side: number): Size {
  if (height > width) return { width: roundHalfEven((width / height) * side), height: side }
  if (width > height) return { width: side, height: roundHalfEven((height / width) * side) }
  return { width: side, height: side }
}

export function shorterSideTo({ width, height }: Size, side: number): Size {
  if (height < width) return { width: roundHalfEven((width / height) * side), height: side }
  if (width < height) return { width: side, height: roundHalfEven((height / width) * side) }
  return { width: side, height: side }
}

export function scaledBy({ width, height }: Size, factor: number): Size {
  return { width: roundHalfEven(width * factor), height: roundHalfEven(height * factor) }
}

/** 0 for one side keeps the aspect; null when both are 0, which means the size as it is. No side gets shorter than `least`. */
export function withOpenSide(old: Size, wanted: Size, least = 1): Size | null {
  if (wanted.width === 0 && wanted.height === 0) return null
  const [width, height] = [Math.max(least, wanted.width), Math.max(least, wanted.height)]
  if (wanted.width === 0) return { width: Math.max(least, roundHalfEven((old.width * height) / old.height)), height }
  if (wanted.height === 0) return { width, height: Math.max(least, roundHalfEven((old.height * width) / old.width)) }
  return { width, height }
}

// Tensors whose last two axes are rows and columns: latents ([batch, channels, height, width], with time before height
// for video). All axes before these two count as a stack of planes, each resized by itself; only `bislerp` looks at the
// channels together.

export const PLANE_METHODS = ['nearest-exact', 'bilinear', 'area', 'bicubic', 'bislerp'] as const
type PlaneMethod = (typeof PLANE_METHODS)[number]

interface PlaneResize {
  readonly width: number
  readonly height: number
  readonly method: PlaneMethod
  readonly crop: CropMethod
}

export function planeSize(tensor: Tensor): { width: number; height: number } {
  const [height, width] = tensor.shape.slice(-2)
  return { width, height }
}

/** Both ends of an axis cut off evenly, so that `share` of it is left. */
function cutCentre(tensor: Tensor, axis: number, { share, work }: { share: number; work: PixelWork }): Tensor {
  const side = tensor.shape[axis]
  const start = roundHalfEven((side - side * share) / 2)
  return narrow(tensor, { axis, start, count: side - 2 * start }, work)
}

/** The part of every plane that has the target's aspect. */
function cutToAspect(tensor: Tensor, target: { width: number; height: number }, work: PixelWork): Tensor {
  const { width, height } = planeSize(tensor)
  const [oldAspect, newAspect] = [width / height, target.width / target.height]
  const rank = tensor.shape.length
  if (oldAspect > newAspect) return cutCentre(tensor, rank - 1, { share: newAspect / oldAspect, work })
  if (oldAspect < newAspect) return cutCentre(tensor, rank - 2, { share: oldAspect / newAspect, work })
  return tensor
}

export function resizePlanes(tensor: Tensor, { width, height, method, crop }: PlaneResize, work: PixelWork): Tensor {
  if (method === 'bislerp') {
    return bislerp(crop === 'center' ? cutToAspect(tensor, { width, height }, work) : tensor, { width, height }, work)
  }
  const leading = tensor.shape.slice(0, -2)
  const old = planeSize(tensor)
  const planes = reshape(tensor, [elementCount(leading), old.height, old.width])
  return reshape(upscale(planes, { width, height, method, crop }, work), [...leading, height, width])
}
