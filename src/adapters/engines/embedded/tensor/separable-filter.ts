/**
 * Symmetric kernels that are a product of a row and a column, on images whose borders are reflected (the edge itself is not
 * repeated). For every row the rows around it are summed first, then the sum is filtered along the row.
 */
import { NodeError } from '../node-error.ts'
import { type PixelWork, type Tensor, viewOf } from './tensor.ts'

/** Weights from the centre outwards: `half[0]` once, the others on both sides. At least two. */
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

/** Fills the ends of a row whose middle is there, so that the loop over pixels needs no conditions. */
function reflectEnds(padded: Float64Array, { width, channels, radius }: RowShape): void {
  for (let k = 1; k <= radius; k++) {
    for (let c = 0; c < channels; c++) {
      padded[(radius - k) * channels + c] = padded[(radius + k) * channels + c]
      padded[(radius + width - 1 + k) * channels + c] = padded[(radius + width - 1 - k) * channels + c]
    }
  }
}

/** Where the rows around a target row begin, from the middle outwards; both of a pair share the weight `half[k]`. */
interface Column {
  readonly above: number[]
  readonly below: number[]
  readonly length: number
}

/** Weighted sums of rows, written from `to` on. Two pairs of rows at a time: fewer passes over the sums. */
function sumRows(data: Float32Array, { above, below, length }: Column, { half, sums, to }: RowSums): void {
  const [middle, a, b] = [above[0], above[1], below[1]]
  const [weight, next] = [half[0], half[1]]
  for (let i = 0; i < length; i++) sums[to + i] = data[middle + i] * weight + (data[a + i] + data[b + i]) * next
  for (let k = 2; k < half.length; k += 2) {
    const [c, d, first] = [above[k], below[k], half[k]]
    // An odd one out goes with itself at no weight.
    const isPair = k + 1 < half.length
    const [e, f, second] = isPair ? [above[k + 1], below[k + 1], half[k + 1]] : [c, d, 0]
    for (let i = 0; i < length; i++) {
      sums[to + i] += (data[c + i] + data[d + i]) * first + (data[e + i] + data[f + i]) * second
    }
  }
}

interface RowSums {
  readonly half: HalfKernel
  readonly sums: Float64Array
  readonly to: number
}

/** Four neighbours at a time: each weight is loaded once for all of them. */
function filterRow(padded: Float64Array, out: Float64Array, half: HalfKernel, channels: number): void {
  const radius = half.length - 1
  const length = out.length
  const offset = radius * channels
  const weight = half[0]
  const unrolled = length - (length % 4)
  for (let i = 0; i < unrolled; i += 4) {
    const centre = i + offset
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
    let sum = padded[i + offset] * weight
    for (let k = 1; k <= radius; k++) {
      sum += (padded[i + offset - k * channels] + padded[i + offset + k * channels]) * half[k]
    }
    out[i] = sum
  }
}

/** What to write for a filtered row, given the row as it was: most filters just copy, some mix the two. */
export type Finish = (filtered: Float64Array, original: Float32Array, out: Float32Array) => void

const copy: Finish = (filtered, _original, out) => {
  for (let i = 0; i < out.length; i++) out[i] = filtered[i]
}

export function filterSeparable(
  image: Tensor,
  { half, finish = copy }: { readonly half: HalfKernel; readonly finish?: Finish },
  { allocate, checkpoint }: PixelWork,
): Tensor {
  const { batch, height, width, channels, data } = viewOf(image)
  const radius = half.length - 1
  checkReflectable({ width, height }, radius)
  const result = allocate(image.shape)
  const length = width * channels
  const padded = new Float64Array((width + 2 * radius) * channels)
  const filtered = new Float64Array(length)
  const newOffsets = () => new Array<number>(radius + 1).fill(0)
  const column = { above: newOffsets(), below: newOffsets(), length }
  for (let row = 0; row < batch * height; row++) {
    checkpoint()
    const y = row % height
    for (let k = 0; k <= radius; k++) {
      column.above[k] = (row - y + reflected(y - k, height)) * length
      column.below[k] = (row - y + reflected(y + k, height)) * length
    }
    sumRows(data, column, { half, sums: padded, to: radius * channels })
    reflectEnds(padded, { width, channels, radius })
    filterRow(padded, filtered, half, channels)
    const at = row * length
    finish(filtered, data.subarray(at, at + length), result.data.subarray(at, at + length))
  }
  return result
}
