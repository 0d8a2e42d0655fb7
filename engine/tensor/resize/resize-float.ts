/**
 * Resizing in single precision for methods that can do one axis after the other: each source row that is needed is resized
 * horizontally once, kept in a small ring while target rows use it, and combined vertically; so memory is touched in order
 * and nothing is computed twice.
 */
import { TAP_BYTES } from '../../simd/kernels/resize-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'
import { type AxisTable, createAxisTable, type SeparableMethod } from './axis-table.ts'

/** A part of an image, or all of it: where its rows begin and how far apart they are. */
export interface Plane {
  readonly data: Float32Array
  /** Index of the first value. */
  readonly start: number
  readonly rowStride: number
  readonly width: number
  readonly height: number
  readonly channels: number
}

export interface ResizeTarget {
  readonly data: Float32Array
  readonly start: number
  readonly width: number
  readonly height: number
}

interface ResizeTables {
  readonly horizontal: AxisTable
  readonly vertical: AxisTable
}

type Size = { readonly width: number; readonly height: number }

export function createResizeTables(method: SeparableMethod, from: Size, to: Size): ResizeTables {
  return {
    horizontal: createAxisTable(method, from.width, to.width),
    vertical: createAxisTable(method, from.height, to.height),
  }
}

const FLOAT_BYTES = 4
const CHANNELS_AT_ONCE = 4

/** Resizes the row at one address of the workspace into another. */
type RowPass = (source: number, target: number) => void

export function writeTable({ ints, floats }: Workspace, at: number, { table, channels }: TableOf): void {
  const { indexes, weights } = table
  for (let tap = 0, word = at / FLOAT_BYTES; tap < indexes.length; tap++, word += 2) {
    ints[word] = indexes[tap] * channels * FLOAT_BYTES
    floats[word + 1] = weights[tap]
  }
}

interface TableOf {
  readonly table: AxisTable
  readonly channels: number
}

function createRowPass(space: Workspace, at: number, { table, channels }: TableOf): RowPass {
  writeTable(space, at, { table, channels })
  const { taps, indexes } = table
  const gather = taps === 1 ? space.run.gatherOne : space.run.gatherFour
  const end = at + indexes.length * TAP_BYTES
  const lastGroup = Math.ceil(channels / CHANNELS_AT_ONCE) - 1
  return (source, target) => {
    // From the last four channels to the first: what they write beyond their pixel belongs to the first of the next.
    for (let group = lastGroup; group >= 0; group--) {
      const offset = group * CHANNELS_AT_ONCE * FLOAT_BYTES
      gather(target + offset, source + offset, at, end, channels * FLOAT_BYTES)
    }
  }
}

interface Addresses {
  readonly source: number
  readonly ring: readonly number[]
  readonly out: number
  readonly table: number
  readonly layout: Layout
}

function layOut(source: Plane, target: ResizeTarget, { horizontal, vertical }: ResizeTables): Addresses {
  const layout = new Layout()
  const rowBytes = target.width * source.channels * FLOAT_BYTES
  return {
    source: layout.take(source.width * source.channels * FLOAT_BYTES),
    ring: Array.from({ length: vertical.taps }, () => layout.take(rowBytes)),
    out: layout.take(rowBytes),
    table: layout.take(horizontal.indexes.length * TAP_BYTES),
    layout,
  }
}

/** Where a source row lies once it has been resized horizontally. Rows that were used lately are still there. */
function createRowFinder(
  space: Workspace,
  source: Plane,
  { addresses, rowPass }: { addresses: Addresses; rowPass: RowPass },
) {
  const { ring } = addresses
  const heldRows = new Int32Array(ring.length).fill(-1)
  const length = source.width * source.channels
  return (row: number): number => {
    const entry = row % ring.length
    if (heldRows[entry] === row) return ring[entry]
    const from = source.start + row * source.rowStride
    space.floats.set(source.data.subarray(from, from + length), addresses.source / FLOAT_BYTES)
    rowPass(addresses.source, ring[entry])
    heldRows[entry] = row
    return ring[entry]
  }
}

interface RowSum {
  readonly rowAt: (row: number) => number
  readonly vertical: AxisTable
  readonly addresses: Addresses
  readonly bytes: number
}

/** Answers with the address of target row `y`. */
function combineRows({ run }: Workspace, { rowAt, vertical, addresses, bytes }: RowSum, y: number): number {
  const { taps, indexes, weights } = vertical
  const { out } = addresses
  const start = y * taps
  const row = (tap: number) => rowAt(indexes[start + tap])
  if (taps === 1) return row(0)
  run.combineFour(out, bytes, row(0), row(1), row(2), row(3), ...weights.subarray(start, start + 4))
  return out
}

/** Resizes one image of a batch. `checkpoint` is called once per target row. */
export function resizePlane(
  source: Plane,
  target: ResizeTarget,
  { tables, checkpoint }: { readonly tables: ResizeTables; checkpoint(): void },
): void {
  const { horizontal, vertical } = tables
  const { channels } = source
  const rowLength = target.width * channels
  const addresses = layOut(source, target, tables)
  using space = openWorkspace(addresses.layout)
  const rowPass = createRowPass(space, addresses.table, { table: horizontal, channels })
  const rowAt = createRowFinder(space, source, { addresses, rowPass })
  const sum = { rowAt, vertical, addresses, bytes: rowLength * FLOAT_BYTES }
  for (let y = 0; y < target.height; y++) {
    checkpoint()
    const from = combineRows(space, sum, y) / FLOAT_BYTES
    target.data.set(space.floats.subarray(from, from + rowLength), target.start + y * rowLength)
  }
}
