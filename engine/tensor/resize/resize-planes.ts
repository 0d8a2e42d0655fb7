/**
 * Tensors whose last two axes are rows and columns: latents ([batch, channels, height, width], with time before height
 * for video). All axes before these two count as a stack of planes, each resized by itself; only `bislerp` looks at the
 * channels together.
 */

import { roundHalfEven } from '../../../lib/python/numbers.ts'
import { narrow, reshape } from '../batch-axis.ts'
import { elementCount, type PixelWork, type Tensor } from '../tensor.ts'
import { bislerp } from './bislerp.ts'
import { type CropMethod, upscale } from './upscale.ts'

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
