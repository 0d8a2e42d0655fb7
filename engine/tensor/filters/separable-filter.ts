/**
 * Symmetric kernels that are a product of a row and a column, on images whose borders are reflected (the edge itself is not
 * repeated).
 */
import { NodeError } from '../../node/node-error.ts'
import { runRows } from '../rows/run-rows.ts'
import { type PixelWork, type Tensor, viewOf } from '../tensor.ts'
import type { HalfKernel, SeparableFilter } from './filter-rows.ts'

/** A bell over -1..1 in both axes: sigma is relative to the radius. The sum of the whole kernel is 1. */
export function gaussianHalf(radius: number, sigma: number): HalfKernel {
  const half = Float64Array.from({ length: radius + 1 }, (_, k) => Math.exp(-((k / radius) ** 2) / (2 * sigma * sigma)))
  const sum = half.reduce((total, weight, k) => total + (k === 0 ? weight : 2 * weight), 0)
  return half.map((weight) => weight / sum)
}

function checkReflectable({ width, height }: { width: number; height: number }, radius: number): void {
  if (width > radius && height > radius) return
  const message =
    `Padding size should be less than the corresponding input dimension, but got: padding (${radius}, ${radius}) ` +
    `at dimension 3 of input with height ${height} and width ${width}`
  throw new NodeError('RuntimeError', message)
}

// For its first row a band copies all rows around it, which is cheap beside the sums of the others.
const LEAST_ROWS = 16

export function filterSeparable(image: Tensor, { half, sharpenBy }: SeparableFilter, work: PixelWork): Tensor {
  const { batch, height, width, channels, data } = viewOf(image)
  checkReflectable({ width, height }, half.length - 1)
  const result = work.allocate(image.shape)
  const shared = { rows: batch * height, leastRows: LEAST_ROWS, values: 2 * data.length }
  const filter = { from: data, to: result.data, height, width, channels, half, sharpenBy }
  if (data.length > 0) runRows({ name: 'filter', ...shared, ...filter }, work)
  return result
}
