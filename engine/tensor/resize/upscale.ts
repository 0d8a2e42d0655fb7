/**
 * The one resize behind most nodes (ComfyUI's `common_upscale`): five methods, and an optional crop to the target's aspect
 * before it. Works on images and masks alike.
 */
import { roundHalfEven } from '../../../lib/python/numbers.ts'
import { NodeError } from '../../node/node-error.ts'
import { type PixelWork, type Tensor, viewOf } from '../tensor.ts'
import type { Window } from '../window.ts'
import { createLanczosTable } from './lanczos-table.ts'
import { resizePlaneArea } from './resize-area.ts'
import { resizePlaneBilinear } from './resize-bilinear.ts'
import { createResizeTables, type Plane, type ResizeTarget, resizePlane } from './resize-float.ts'
import { resizePlaneLanczos } from './resize-lanczos.ts'

export const UPSCALE_METHODS = ['nearest-exact', 'bilinear', 'area', 'bicubic', 'lanczos'] as const
export type UpscaleMethod = (typeof UPSCALE_METHODS)[number]
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

type PlaneResizer = (source: Plane, target: ResizeTarget) => void

function createPlaneResizer(from: Window, { width, height, method }: UpscaleOptions, work: PixelWork): PlaneResizer {
  const { checkpoint } = work
  if (method === 'lanczos') {
    const horizontal = createLanczosTable(from.width, width)
    const vertical = createLanczosTable(from.height, height)
    return (source, target) => resizePlaneLanczos(source, target, { tables: { horizontal, vertical }, checkpoint })
  }
  if (method === 'bilinear') return (source, target) => resizePlaneBilinear(source, target, { checkpoint })
  if (method === 'area') return (source, target) => resizePlaneArea(source, target, { checkpoint })
  const tables = createResizeTables(method, from, { width, height })
  return (source, target) => resizePlane(source, target, { tables, checkpoint })
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
  const resizeOne = createPlaneResizer(from, options, work)
  const rowStride = view.width * channels
  for (let index = 0; index < batch; index++) {
    const start = index * view.height * rowStride + from.y * rowStride + from.x * channels
    const source = { data: view.data, start, rowStride, width: from.width, height: from.height, channels }
    resizeOne(source, { data: result.data, start: index * height * width * channels, width, height })
  }
  return result
}
