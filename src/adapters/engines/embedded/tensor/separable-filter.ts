/**
 * Symmetric kernels that are a product of a row and a column, on images whose borders are reflected (the edge itself is not
 * repeated). Every row is filtered across once and kept in a ring while the rows below still need it.
 */
import { NodeError } from '../node-error.ts'
import { type Tensor, viewOf } from './tensor.ts'
import type { PixelWork } from './upscale.ts'

/** Weights from the centre outwards: `half[0]` once, the others on both sides. */
export type HalfKernel = Float64Array

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

/** Index of a place outside 0..size-1, reflected at the middle of the edge pixels. */
function reflected(index: number, size: number): number {
  if (index < 0) return -index
  return index >= size ? 2 * (size - 1) - index : index
}

interface RowShape {
  readonly width: number
  readonly channels: number
  readonly radius: number
}

/** The row with its reflected ends, so that the loop over pixels needs no conditions. */
function padRow(padded: Float32Array, row: Float32Array, { width, channels, radius }: RowShape): void {
  padded.set(row, radius * channels)
  for (let k = 1; k <= radius; k++) {
    for (let c = 0; c < channels; c++) {
      padded[(radius - k) * channels + c] = row[reflected(-k, width) * channels + c]
      padded[(radius + width - 1 + k) * channels + c] = row[reflected(width - 1 + k, width) * channels + c]
    }
  }
}

/** Four neighbours at a time: each weight is loaded once for all of them. */
function filterRow(padded: Float32Array, out: Float64Array, half: HalfKernel, channels: number): void {
  const radius = half.length - 1
  const length = out.length
  const offset = radius * channels
  const unrolled = length - (length % 4)
  for (let i = 0; i < unrolled; i += 4) {
    const centre = i + offset
    const weight = half[0]
    let a = padded[centre] * weight
    let b = padded[centre + 1] * weight
    let c = padded[centre + 2] * weight
    let d = padded[centre + 3] * weight
    for (let k = 1, left = centre - channels, right = centre + channels; k <= radius; k++) {
      const w = half[k]
      a += (padded[left] + padded[right]) * w
      b += (padded[left + 1] + padded[right + 1]) * w
      c += (padded[left + 2] + padded[right + 2]) * w
      d += (padded[left + 3] + padded[right + 3]) * w
      left -= channels
      right += channels
    }
    out[i] = a
    out[i + 1] = b
    out[i + 2] = c
    out[i + 3] = d
  }
  for (let i = unrolled; i < length; i++) {
    let sum = padded[i + offset] * half[0]
    for (let k = 1; k <= radius; k++) {
      sum += (padded[i + offset - k * channels] + padded[i + offset + k * channels]) * half[k]
    }
    out[i] = sum
  }
}

/** Adds two rows at a time, weighted. */
function addRows(sums: Float64Array, above: Float64Array, below: Float64Array, weight: number): void {
  for (let i = 0; i < sums.length; i++) sums[i] += (above[i] + below[i]) * weight
}

/** What to write for a filtered row, given the row as it was: most filters just copy, some mix the two. */
export type Finish = (filtered: Float64Array, original: Float32Array, out: Float32Array) => void

const copy: Finish = (filtered, _original, out) => out.set(filtered)

export function filterSeparable(
  image: Tensor,
  { half, finish = copy }: { readonly half: HalfKernel; readonly finish?: Finish },
  { allocate, checkpoint }: PixelWork,
): Tensor {
  const { batch, height, width, channels, data } = viewOf(image)
  const radius = half.length - 1
  checkReflectable({ width, height }, radius)
  const result = allocate(image.shape)
  const rowLength = width * channels
  const padded = new Float32Array((width + 2 * radius) * channels)
  const places = 2 * radius + 1
  const ring = Array.from({ length: places }, () => new Float64Array(rowLength))
  const sums = new Float64Array(rowLength)
  for (let index = 0; index < batch; index++) {
    const first = index * height
    let filled = 0
    for (let y = 0; y < height; y++) {
      checkpoint()
      for (; filled <= Math.min(y + radius, height - 1); filled++) {
        const at = (first + filled) * rowLength
        padRow(padded, data.subarray(at, at + rowLength), { width, channels, radius })
        filterRow(padded, ring[filled % places], half, channels)
      }
      const centre = ring[y % places]
      for (let i = 0; i < rowLength; i++) sums[i] = centre[i] * half[0]
      for (let k = 1; k <= radius; k++) {
        addRows(sums, ring[reflected(y - k, height) % places], ring[reflected(y + k, height) % places], half[k])
      }
      const at = (first + y) * rowLength
      finish(sums, data.subarray(at, at + rowLength), result.data.subarray(at, at + rowLength))
    }
  }
  return result
}
