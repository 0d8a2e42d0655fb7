/**
 * How many pixels a picture says it has, out of its headers alone: nothing is decoded. Reads go to a file that lies anywhere, so they
 * are few. null: the headers do not say, or contradict themselves.
 */

export interface PictureSize {
  readonly width: number
  readonly height: number
}

/** Fewer bytes at the end of the file. */
type ReadRange = (start: number, length: number) => Promise<Buffer>

// Holds the headers of nearly every picture, those of a camera with its preview included.
export const PICTURE_HEAD_BYTES = 65_536

/** A file of which only so much is known. */
export function readFrom(bytes: Buffer): ReadRange {
  return async (start, length) => bytes.subarray(start, start + length)
}

export async function readPictureSize(read: ReadRange, contentType: string): Promise<PictureSize | null> {
  const reader = READERS[contentType]
  if (reader === undefined) return null
  const first = await read(0, PICTURE_HEAD_BYTES)
  try {
    const size = await reader(first, read)
    return size !== null && size.width > 0 && size.height > 0 ? size : null
  } catch (error) {
    // The file ends within its header.
    if (error instanceof RangeError) return null
    throw error
  }
}

type Reader = (first: Buffer, read: ReadRange) => PictureSize | null | Promise<PictureSize | null>

const READERS: Readonly<Record<string, Reader>> = {
  'image/png': (first) => ({ width: first.readUInt32BE(16), height: first.readUInt32BE(20) }),
  'image/gif': (first) => ({ width: first.readUInt16LE(6), height: first.readUInt16LE(8) }),
  'image/bmp': readBmp,
  'image/webp': readWebp,
  'image/jpeg': readJpeg,
  'image/tiff': readTiff,
  'image/avif': readHeif,
  'image/heic': readHeif,
  'image/x-exr': readExr,
  'image/vnd.radiance': readRadiance,
}

const BMP_CORE_HEADER = 12

function readBmp(first: Buffer): PictureSize {
  if (first.readUInt32LE(14) === BMP_CORE_HEADER)
    return { width: first.readUInt16LE(18), height: first.readUInt16LE(20) }
  // The rows of a negative height are stored from the top.
  return { width: first.readInt32LE(18), height: Math.abs(first.readInt32LE(22)) }
}

function readWebp(first: Buffer): PictureSize | null {
  const form = first.toString('latin1', 12, 16)
  if (form === 'VP8 ') return { width: first.readUInt16LE(26) & 0x3fff, height: first.readUInt16LE(28) & 0x3fff }
  if (form === 'VP8X') return { width: first.readUIntLE(24, 3) + 1, height: first.readUIntLE(27, 3) + 1 }
  if (form !== 'VP8L') return null
  const bits = first.readUInt32LE(21)
  return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
}

// Many more segments than a camera and three programs write before the picture begins.
const MAX_SEGMENTS = 200
const NO_FRAME: ReadonlySet<number> = new Set([0xc4, 0xc8, 0xcc])

async function readJpeg(first: Buffer, read: ReadRange): Promise<PictureSize | null> {
  for (let at = 2, count = 0; count < MAX_SEGMENTS; count++) {
    const head = at + 9 <= first.length ? first.subarray(at, at + 9) : await read(at, 9)
    if (head.readUInt8(0) !== 0xff) return null
    const marker = head.readUInt8(1)
    if (marker === 0xff) {
      at++
      continue
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && !NO_FRAME.has(marker)
    if (isFrame) return { width: head.readUInt16BE(7), height: head.readUInt16BE(5) }
    at += 2 + head.readUInt16BE(2)
  }
  return null
}

const TIFF_SHORT = 3
const TIFF_WIDTH = 256
const TIFF_HEIGHT = 257

/** The list of fields may lie behind the pixels. */
async function readTiff(first: Buffer, read: ReadRange): Promise<PictureSize | null> {
  const isLittle = first.toString('latin1', 0, 2) === 'II'
  const short = (bytes: Buffer, at: number) => (isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at))
  const long = (bytes: Buffer, at: number) => (isLittle ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at))
  const start = long(first, 4)
  const count = short(await read(start, 2), 0)
  const fields = await read(start + 2, count * 12)
  const found = new Map<number, number>()
  for (let at = 0; at < count * 12; at += 12) {
    const isShort = short(fields, at + 2) === TIFF_SHORT
    found.set(short(fields, at), isShort ? short(fields, at + 8) : long(fields, at + 8))
  }
  return { width: found.get(TIFF_WIDTH) ?? 0, height: found.get(TIFF_HEIGHT) ?? 0 }
}

/** The largest of the sizes that its parts have: a whole that is made of tiles has one of its own. */
function readHeif(first: Buffer): PictureSize | null {
  let largest: PictureSize | null = null
  for (let at = first.indexOf('ispe'); at !== -1; at = first.indexOf('ispe', at + 4)) {
    const size = { width: first.readUInt32BE(at + 8), height: first.readUInt32BE(at + 12) }
    if (largest === null || size.width * size.height > largest.width * largest.height) largest = size
  }
  return largest
}

const EXR_WINDOW = 'dataWindow\0box2i\0'

function readExr(first: Buffer): PictureSize | null {
  const found = first.indexOf(EXR_WINDOW)
  if (found === -1) return null
  const at = found + EXR_WINDOW.length + 4
  const [left, top, right, bottom] = [0, 4, 8, 12].map((offset) => first.readInt32LE(at + offset))
  return { width: right - left + 1, height: bottom - top + 1 }
}

function readRadiance(first: Buffer): PictureSize | null {
  const found = /\n[+-]([XY]) (\d{1,9}) [+-][XY] (\d{1,9})\n/.exec(first.toString('latin1', 0, 4096))
  if (found === null) return null
  const [one, other] = [Number(found[2]), Number(found[3])]
  return found[1] === 'Y' ? { width: other, height: one } : { width: one, height: other }
}
