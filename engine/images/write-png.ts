/**
 * A PNG file from rows of bytes. Rows are filtered in bands; bands are compressed side by side on the runtime's own threads
 * and joined to one stream. So a large picture uses more than one core, needs little memory beside its file, and a
 * cancelled run is noticed between bands.
 */
import { promisify } from 'node:util'
import { constants, deflateRaw, type InputType, type ZlibOptions } from 'node:zlib'
import { type PngChunk, writeChunks } from '../../lib/files/png-chunks.ts'
import type { FileTags } from '../files/file-tags.ts'
import { type Checksum, FIRST_CHECKSUM, filterBand, type PngRows } from './png-filter.ts'
import { toTextChunk } from './png-text.ts'

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
