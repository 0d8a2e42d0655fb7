/**
 * Separable filters as work on rows: for every row the rows around it are summed first, then the sum is filtered along the row.
 */
import { PAIR_BYTES } from '../../simd/kernels/filter-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'
import type { RowLoop, RowWork } from '../rows/row-loop.ts'

/** Weights from the centre outwards: `half[0]` once, the others on both sides. At least two; all together 1. */
export type HalfKernel = Float64Array

export interface SeparableFilter {
  readonly half: HalfKernel
  /** When given, the result is the image moved away from its filtered self, this many times as far, and clipped to 0..1. */
  readonly sharpenBy?: number | undefined
}

export interface FilterJob extends RowWork, SeparableFilter {
  readonly name: 'filter'
  readonly from: Float32Array
  readonly to: Float32Array
  readonly height: number
  readonly width: number
  readonly channels: number
}

const WORD_BYTES = 4

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

/** Where a row lies in the workspace; rows are counted over all images. */
function createRowFinder(
  space: Workspace,
  { ring }: Addresses,
  { from, length }: { from: Float32Array; length: number },
) {
  const heldRows = new Int32Array(ring.length).fill(-1)
  return (row: number): number => {
    const entry = row % ring.length
    if (heldRows[entry] !== row) {
      space.load(ring[entry], from.subarray(row * length, (row + 1) * length))
      heldRows[entry] = row
    }
    return ring[entry]
  }
}

interface RowSum {
  readonly addresses: Addresses
  readonly shape: RowShape
  readonly half: HalfKernel
  readonly height: number
  readonly rowAt: (row: number) => number
}

/** Leaves filtered row `y` at `addresses.out`. */
function filterRowAt(space: Workspace, { addresses, shape, half, height, rowAt }: RowSum, y: number): void {
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

export function openFilterRows({ from, to, height, width, channels, half, sharpenBy }: FilterJob): RowLoop {
  const length = width * channels
  const shape = { width, channels, radius: half.length - 1 }
  const addresses = layOut(shape)
  const { out } = addresses
  const space = openWorkspace(addresses.layout)
  space.floats.set(half.subarray(1), addresses.weights / WORD_BYTES)
  const rowAt = createRowFinder(space, addresses, { from, length })
  return {
    writeRow(row) {
      const y = row % height
      const first = row - y
      filterRowAt(space, { addresses, shape, half, height, rowAt: (near) => rowAt(first + near) }, y)
      if (sharpenBy !== undefined) space.run.sharpen(out, length * WORD_BYTES, rowAt(row), out, sharpenBy)
      space.store(out, to.subarray(row * length, (row + 1) * length))
    },
    [Symbol.dispose]: () => space[Symbol.dispose](),
  }
}
