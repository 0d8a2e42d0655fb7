/**
 * Rows of pixels in the form in which a PNG compresses them: each behind the number of its filter, which is the one of four
 * whose bytes are smallest. Works on bands of rows, so that the caller can compress one while the next is prepared.
 */
import { Layout, openWorkspace, type Workspace } from '../simd/workspace.ts'

/** Where the bytes of rows come from. */
export interface PngRows {
  readonly height: number
  readonly rowBytes: number
  /** Bytes per pixel. */
  readonly pixelBytes: number
  /** Bytes of working memory that `fill` needs. */
  readonly scratchBytes: number
  /** Writes row `y` at an address of the workspace. */
  fill(space: Workspace, y: number, addresses: { readonly target: number; readonly scratch: number }): void
}

interface FilteredBand {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly checksum: Checksum
}

/** Adler's two sums; they run on from band to band. */
export interface Checksum {
  readonly low: number
  readonly high: number
}

export const FIRST_CHECKSUM: Checksum = { low: 1, high: 0 }

// Filters by their number in the format; the third (the mean) seldom wins against the fourth.
const FILTERS = [
  { number: 0, kernel: 'filterNone' },
  { number: 1, kernel: 'filterSub' },
  { number: 2, kernel: 'filterUp' },
  { number: 4, kernel: 'filterPaeth' },
] as const

const MARGIN_BYTES = 64
const SUMS_BYTES = 16
const WORD_BYTES = 4
const MAX_CHECKED_BYTES = 5552

interface Addresses {
  readonly scratch: number
  /** The row being filtered and the one above, alternating; zeros in front of both. */
  readonly rows: readonly [number, number]
  /** One filtered row per filter, the number of the filter right in front. */
  readonly filtered: readonly number[]
  readonly sums: number
  readonly state: number
  readonly layout: Layout
}

function layOut({ rowBytes, scratchBytes }: PngRows): Addresses {
  const layout = new Layout()
  const takeRow = () => layout.take(MARGIN_BYTES + rowBytes) + MARGIN_BYTES
  return {
    scratch: layout.take(scratchBytes),
    rows: [takeRow(), takeRow()],
    filtered: FILTERS.map(takeRow),
    sums: layout.take(SUMS_BYTES),
    state: layout.take(2 * WORD_BYTES),
    layout,
  }
}

function readRow(space: Workspace, rows: PngRows, { y, target, scratch }: RowAddresses): void {
  rows.fill(space, y, { target, scratch })
  // Kernels work in whole vectors: what lies behind the row is not to count.
  space.bytes.fill(0, target + rows.rowBytes, target + rows.rowBytes + MARGIN_BYTES / 2)
}

interface RowAddresses {
  readonly y: number
  readonly target: number
  readonly scratch: number
}

/** Where the best of the filtered rows begins, with its number. */
function bestFilter(
  space: Workspace,
  { rowBytes, pixelBytes }: PngRows,
  { addresses, row, previous }: RowPair,
): number {
  const { run, ints, bytes } = space
  const word = addresses.sums / WORD_BYTES
  let [best, least] = [0, Number.POSITIVE_INFINITY]
  FILTERS.forEach(({ number, kernel }, index) => {
    const target = addresses.filtered[index]
    run[kernel](target, rowBytes, row, previous, pixelBytes, addresses.sums)
    const sum = ints[word] + ints[word + 1] + ints[word + 2] + ints[word + 3]
    if (sum >= least) return
    least = sum
    best = target - 1
    bytes[best] = number
  })
  return best
}

interface RowPair {
  readonly addresses: Addresses
  readonly row: number
  readonly previous: number
}

function addToChecksum({ run }: Workspace, from: number, { count, state }: { count: number; state: number }): void {
  for (let at = from; at < from + count; at += MAX_CHECKED_BYTES) {
    run.addToChecksum(at, Math.min(at + MAX_CHECKED_BYTES, from + count), state)
  }
}

/** Rows `from` to `to - 1`, filtered. */
export function filterBand(
  rows: PngRows,
  { from, to, checksum }: { readonly from: number; readonly to: number; readonly checksum: Checksum },
): FilteredBand {
  const addresses = layOut(rows)
  const length = rows.rowBytes + 1
  const result = new Uint8Array((to - from) * length)
  using space = openWorkspace(addresses.layout)
  const { bytes, ints } = space
  const { scratch, state } = addresses
  const rowAt = (y: number) => addresses.rows[y & 1]
  for (const row of addresses.rows) bytes.fill(0, row - MARGIN_BYTES, row)
  if (from === 0) bytes.fill(0, rowAt(-1), rowAt(-1) + rows.rowBytes + MARGIN_BYTES / 2)
  else readRow(space, rows, { y: from - 1, target: rowAt(from - 1), scratch })
  ints.set([checksum.low, checksum.high], state / WORD_BYTES)
  for (let y = from; y < to; y++) {
    readRow(space, rows, { y, target: rowAt(y), scratch })
    const best = bestFilter(space, rows, { addresses, row: rowAt(y), previous: rowAt(y - 1) })
    addToChecksum(space, best, { count: length, state })
    result.set(bytes.subarray(best, best + length), (y - from) * length)
  }
  return { bytes: result, checksum: { low: ints[state / WORD_BYTES], high: ints[state / WORD_BYTES + 1] } }
}
