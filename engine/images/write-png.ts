/**
 * A PNG file from rows of bytes. Rows are filtered in bands; bands are compressed side by side on the runtime's own threads
 * and joined to one stream. So a large picture uses more than one core, needs little memory beside its file, and a
 * cancelled run is noticed between bands.
 */

import { promisify } from 'node:util'
import { constants, deflateRaw, type InputType, type ZlibOptions } from 'node:zlib'
import { type PngChunk, writeChunks } from '../../lib/files/png-chunks.ts'
import type { FileTags } from '../files/output-name.ts'
import { NodeError } from '../node/node-error.ts'
import { Layout, openWorkspace, type Workspace } from '../simd/workspace.ts'

// Text chunks of a PNG: `tEXt`, right after the header, in the order given. Values are ASCII by construction (JSON with
// escapes), so the richer chunk types are never needed.

const MAX_KEY_LENGTH = 79
const PRINTABLE_LATIN1 = /^[\x20-\x7e\xa1-\xff]+$/

function toTextChunk([key, value]: FileTags[number]): PngChunk {
  if (key.length > MAX_KEY_LENGTH || !PRINTABLE_LATIN1.test(key)) {
    throw new NodeError(
      'ValueError',
      'a key of extra_pnginfo cannot be written into a PNG: use 1 to 79 Latin characters',
    )
  }
  return { type: 'tEXt', body: Buffer.from(`${key}\0${value}`, 'latin1') }
}

// Rows of pixels in the form in which a PNG compresses them: each behind the number of its filter, which is the one of four
// whose bytes are smallest. Works on bands of rows, so that the caller can compress one while the next is prepared.

/** Where the bytes of rows come from. */
interface PngRows {
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
interface Checksum {
  readonly low: number
  readonly high: number
}

const FIRST_CHECKSUM: Checksum = { low: 1, high: 0 }

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
function filterBand(
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

const COLOR_TYPES = { 1: 0, 3: 2, 4: 6 } as const
type PngChannels = keyof typeof COLOR_TYPES

export interface PngPicture extends PngRows {
  readonly width: number
  readonly channels: PngChannels
  readonly bits: 8 | 16
}

interface WritePngOptions {
  /** zlib's level, 0 to 9. */
  readonly level: number
  readonly texts: FileTags
  checkpoint(): void
}

// Some tens of milliseconds of compression: short against the deadline of a cancel, long against the price of a band.
const BAND_BYTES = 1_048_576
// One of the runtime's four threads stays free for files.
const BANDS_AT_ONCE = 3
// How far back a match may lie.
const WINDOW_BYTES = 32_768
// Method and window, level bits and check bits of the format that wraps the stream.
const STREAM_HEADER = Uint8Array.of(0x78, 0x5e)

function header({ width, height, channels, bits }: PngPicture): PngChunk {
  const body = Buffer.alloc(13)
  body.writeUInt32BE(width, 0)
  body.writeUInt32BE(height, 4)
  body[8] = bits
  body[9] = COLOR_TYPES[channels]
  return { type: 'IHDR', body }
}

function checksumBytes({ low, high }: Checksum): Uint8Array {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt16BE(high, 0)
  bytes.writeUInt16BE(low, 2)
  return bytes
}

const deflateAsync: (bytes: InputType, options: ZlibOptions) => Promise<Buffer> = promisify(deflateRaw)

interface Band {
  readonly bytes: Uint8Array
  /** The band before this one: matches may reach back into it. */
  readonly previous: Uint8Array | null
  readonly isLast: boolean
}

function compress({ bytes, previous, isLast }: Band, level: number): Promise<Buffer> {
  return deflateAsync(bytes, {
    level,
    memLevel: 9,
    // Room for the whole result: it is then made in one go.
    chunkSize: bytes.length + (bytes.length >> 9) + 1024,
    finishFlush: isLast ? constants.Z_FINISH : constants.Z_SYNC_FLUSH,
    ...(previous !== null && { dictionary: previous.subarray(-WINDOW_BYTES) }),
  })
}

/** The compressed bands, in order, as the parts of one stream. */
async function compressRows(rows: PngRows, { level, checkpoint }: WritePngOptions): Promise<Uint8Array[]> {
  const { height, rowBytes } = rows
  const step = Math.max(1, Math.floor(BAND_BYTES / (rowBytes + 1)))
  const waiting: Promise<Buffer>[] = []
  const parts: Uint8Array[] = [STREAM_HEADER]
  let checksum = FIRST_CHECKSUM
  let previous: Uint8Array | null = null
  for (let from = 0; from < height; from += step) {
    checkpoint()
    const to = Math.min(height, from + step)
    const band = filterBand(rows, { from, to, checksum })
    const compressed = compress({ bytes: band.bytes, previous, isLast: to === height }, level)
    // A cancelled run ends without waiting for these.
    compressed.catch(() => {})
    waiting.push(compressed)
    ;({ checksum } = band)
    previous = band.bytes
    const oldest = waiting.length === BANDS_AT_ONCE ? waiting.shift() : undefined
    if (oldest !== undefined) parts.push(await oldest)
  }
  parts.push(...(await Promise.all(waiting)), checksumBytes(checksum))
  checkpoint()
  return parts
}

/** The file, in memory of its own. */
export async function writePng(picture: PngPicture, options: WritePngOptions): Promise<Uint8Array<ArrayBuffer>> {
  const texts = options.texts.map(toTextChunk)
  const stream = await compressRows(picture, options)
  return writeChunks([
    header(picture),
    ...texts,
    { type: 'IDAT', body: Buffer.concat(stream) },
    { type: 'IEND', body: new Uint8Array(0) },
  ])
}
