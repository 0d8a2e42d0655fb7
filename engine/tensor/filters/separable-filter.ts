/**
 * Symmetric kernels that are a product of a row and a column, on images whose borders are reflected (the edge itself is not
 * repeated). For every row the rows around it are summed first, then the sum is filtered along the row.
 */
import { NodeError } from '../../node/node-error.ts'
import { PAIR_BYTES } from '../../simd/kernels/filter-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'
import { type ImageView, type PixelWork, type Tensor, viewOf } from '../tensor.ts'

/** Weights from the centre outwards: `half[0]` once, the others on both sides. At least two; all together 1. */
export type HalfKernel = Float64Array

/** A bell over -1..1 in both axes: sigma is relative to the radius. The sum of the whole kernel is 1. */
export function gaussianHalf(radius: number, sigma: number): HalfKernel {
  const half = Float64Array.from({ length: radius + 1 }, (_, k) => Math.exp(-((k / radius) ** 2) / (2 * sigma * sigma)))
  const sum = half.reduce((total, weight, k) => total + (k === 0 ? weight : 2 * weight), 0)
  return half.map((weight) => weight / sum)
}

interface SeparableFilter {
  readonly half: HalfKernel
  /** When given, the result is the image moved away from its filtered self, this many times as far, and clipped to 0..1. */
  readonly sharpenBy?: number
}

const WORD_BYTES = 4

function checkReflectable({ width, height }: { width: number; height: number }, radius: number): void {
  if (width > radius && height > radius) return
  const message =
    `Padding size should be less than the corresponding input dimension, but got: padding (${radius}, ${radius}) ` +
    `at dimension 3 of input with height ${height} and width ${width}`
  throw new NodeError('RuntimeError', message)
}

/** An index outside 0..size-1, reflected at the middle of the edge pixels. */
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
function reflectEnds(padded: Float32Array, { width, channels, radius }: RowShape): void {
  for (let k = 1; k <= radius; k++) {
    for (let c = 0; c < channels; c++) {
      padded[(radius - k) * channels + c] = padded[(radius + k) * channels + c]
      padded[(radius + width - 1 + k) * channels + c] = padded[(radius + width - 1 - k) * channels + c]
    }
  }
}

interface Addresses {
  readonly ring: readonly number[]
  readonly pairs: number
  readonly padded: number
  readonly weights: number
  readonly out: number
  readonly layout: Layout
}

function layOut({ width, channels, radius }: RowShape): Addresses {
  const layout = new Layout()
  const rowBytes = width * channels * WORD_BYTES
  return {
    // All rows around a target row are neighbours, so `row % length` gives each an entry of its own.
    ring: Array.from({ length: 2 * radius + 1 }, () => layout.take(rowBytes)),
    pairs: layout.take(radius * PAIR_BYTES),
    padded: layout.take(rowBytes + 2 * radius * channels * WORD_BYTES),
    weights: layout.take(radius * WORD_BYTES),
    out: layout.take(rowBytes),
    layout,
  }
}

/** Where row `row` of one image lies in the workspace. */
function createRowFinder({ floats }: Workspace, { ring }: Addresses, image: Float32Array, length: number) {
  const heldRows = new Int32Array(ring.length).fill(-1)
  return (row: number): number => {
    const entry = row % ring.length
    if (heldRows[entry] !== row) {
      floats.set(image.subarray(row * length, (row + 1) * length), ring[entry] / WORD_BYTES)
      heldRows[entry] = row
    }
    return ring[entry]
  }
}

interface RowWork {
  readonly addresses: Addresses
  readonly shape: RowShape
  readonly half: HalfKernel
  readonly height: number
  readonly rowAt: (row: number) => number
}

/** Leaves filtered row `y` at `addresses.out`. */
function filterRowAt(space: Workspace, { addresses, shape, half, height, rowAt }: RowWork, y: number): void {
  const { run, ints, floats } = space
  const { pairs, padded, weights, out } = addresses
  const { width, channels, radius } = shape
  for (let k = 1, word = pairs / WORD_BYTES; k <= radius; k++, word += PAIR_BYTES / WORD_BYTES) {
    ints[word] = rowAt(reflected(y - k, height))
    ints[word + 1] = rowAt(reflected(y + k, height))
    floats[word + 2] = half[k]
  }
  const stride = channels * WORD_BYTES
  const bytes = width * stride
  const first = padded + radius * stride
  run.sumPairs(first, bytes, rowAt(y), pairs, pairs + radius * PAIR_BYTES)
  reflectEnds(floats.subarray(padded / WORD_BYTES), shape)
  run.filterRow(out, bytes, first, stride, weights, weights + radius * WORD_BYTES)
}

function filterImage(
  view: ImageView,
  { from, to }: { readonly from: Float32Array; readonly to: Float32Array },
  { half, sharpenBy, checkpoint }: SeparableFilter & Pick<PixelWork, 'checkpoint'>,
): void {
  const { height, width, channels } = view
  const length = width * channels
  const shape = { width, channels, radius: half.length - 1 }
  const addresses = layOut(shape)
  using space = openWorkspace(addresses.layout)
  const { run, floats } = space
  floats.set(half.subarray(1), addresses.weights / WORD_BYTES)
  const rowAt = createRowFinder(space, addresses, from, length)
  for (let y = 0; y < height; y++) {
    checkpoint()
    filterRowAt(space, { addresses, shape, half, height, rowAt }, y)
    if (sharpenBy !== undefined) run.sharpen(addresses.out, length * WORD_BYTES, rowAt(y), addresses.out, sharpenBy)
    const out = addresses.out / WORD_BYTES
    to.set(floats.subarray(out, out + length), y * length)
  }
}

export function filterSeparable(image: Tensor, filter: SeparableFilter, { allocate, checkpoint }: PixelWork): Tensor {
  const view = viewOf(image)
  checkReflectable(view, filter.half.length - 1)
  const result = allocate(image.shape)
  const size = view.height * view.width * view.channels
  for (let index = 0; index < view.batch; index++) {
    const part = { from: view.data.subarray(index * size), to: result.data.subarray(index * size) }
    filterImage(view, part, { ...filter, checkpoint })
  }
  return result
}
