/**
 * The one resize behind most nodes (ComfyUI's `common_upscale`): five methods, and an optional crop to the target's aspect
 * before it. Works on images and masks alike.
 */
import { roundHalfEven } from '../../../lib/python/numbers.ts'
import { NodeError } from '../../node/node-error.ts'
import { runRows } from '../rows/run-rows.ts'
import { type PixelWork, type Tensor, viewOf } from '../tensor.ts'
import type { Window } from '../window.ts'
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
