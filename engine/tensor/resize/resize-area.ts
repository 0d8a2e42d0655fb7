/**
 * Area resizing: the mean over every source pixel that a target pixel touches. The sum runs row by row in single precision
 * and is divided by height and width one after the other, as PyTorch does it: an image that goes through 8 bit afterwards
 * would otherwise land on the other side of a step now and then.
 */
import { SPAN_BYTES, SUM_BYTES } from '../../simd/kernels/area-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'
import type { Plane, ResizeTarget } from './resize-float.ts'

const FLOAT_BYTES = 4
const CHANNELS_AT_ONCE = 4

/** The source pixels from `start` to before `end` that target pixel `index` touches along one axis. */
function spanOf(index: number, inSize: number, outSize: number): { readonly start: number; readonly end: number } {
  return { start: Math.floor((index * inSize) / outSize), end: Math.ceil(((index + 1) * inSize) / outSize) }
}

interface Addresses {
  readonly source: number
  readonly sums: number
  readonly out: number
  readonly table: number
  readonly tableEnd: number
  readonly layout: Layout
}

function layOut({ width, channels }: Plane, target: ResizeTarget): Addresses {
  const layout = new Layout()
  const table = layout.take(target.width * SPAN_BYTES)
  return {
    source: layout.take(width * channels * FLOAT_BYTES),
    sums: layout.take(target.width * SUM_BYTES),
    out: layout.take(target.width * channels * FLOAT_BYTES),
    table,
    tableEnd: table + target.width * SPAN_BYTES,
    layout,
  }
}

function writeTable({ ints, floats }: Workspace, at: number, { source, target }: Resize): void {
  const pixelBytes = source.channels * FLOAT_BYTES
  for (let x = 0, word = at / FLOAT_BYTES; x < target.width; x++, word += SPAN_BYTES / FLOAT_BYTES) {
    const { start, end } = spanOf(x, source.width, target.width)
    ints[word] = start * pixelBytes
    ints[word + 1] = end * pixelBytes
    floats[word + 2] = end - start
  }
}

interface Resize {
  readonly source: Plane
  readonly target: ResizeTarget
}

/** Four channels of one target row: all its source rows summed up, then divided. */
function averageRows(space: Workspace, { source, addresses, rows, offset }: RowsOf): void {
  const { sums, table, tableEnd, out } = addresses
  const stride = source.channels * FLOAT_BYTES
  space.bytes.fill(0, sums, sums + ((tableEnd - table) / SPAN_BYTES) * SUM_BYTES)
  for (let row = rows.start; row < rows.end; row++) {
    const from = source.start + row * source.rowStride
    space.floats.set(source.data.subarray(from, from + source.width * source.channels), addresses.source / FLOAT_BYTES)
    space.run.sumSpans(sums, addresses.source + offset, table, tableEnd, stride)
  }
  space.run.divideSums(out + offset, sums, table, tableEnd, stride, rows.end - rows.start)
}

interface RowsOf {
  readonly source: Plane
  readonly addresses: Addresses
  readonly rows: { readonly start: number; readonly end: number }
  /** Bytes from a pixel's first channel to the first of these four. */
  readonly offset: number
}

/** Resizes one image of a batch. `checkpoint` is called once per target row. */
export function resizePlaneArea(source: Plane, target: ResizeTarget, { checkpoint }: { checkpoint(): void }): void {
  const addresses = layOut(source, target)
  using space = openWorkspace(addresses.layout)
  writeTable(space, addresses.table, { source, target })
  const rowLength = target.width * source.channels
  const from = addresses.out / FLOAT_BYTES
  const lastGroup = Math.ceil(source.channels / CHANNELS_AT_ONCE) - 1
  for (let y = 0; y < target.height; y++) {
    checkpoint()
    const rows = spanOf(y, source.height, target.height)
    // From the last four channels to the first: what they write beyond their pixel belongs to the first of the next.
    for (let group = lastGroup; group >= 0; group--) {
      averageRows(space, { source, addresses, rows, offset: group * CHANNELS_AT_ONCE * FLOAT_BYTES })
    }
    target.data.set(space.floats.subarray(from, from + rowLength), target.start + y * rowLength)
  }
}
