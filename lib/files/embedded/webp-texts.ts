/** The texts in the EXIF part of a WebP. Each is written `name:text` in some field that was meant for the maker of a camera. */
import type { BoundedReader } from './byte-source.ts'

const CHUNK_HEAD_BYTES = 8
const FIRST_CHUNK = 12
const EXIF_MARK = 'Exif\0\0'
const ENTRY_BYTES = 12
const ASCII = 2
const MAX_ENTRIES = 1_000
// Of all entries together: many may point to the same bytes.
const MAX_TEXT_BYTES = 33_554_432

export function readWebpTexts(reader: BoundedReader): Map<string, string> {
  for (let at = FIRST_CHUNK; at + CHUNK_HEAD_BYTES <= reader.size; ) {
    const head = reader.read(at, CHUNK_HEAD_BYTES)
    const length = head.readUInt32LE(4)
    if (head.toString('latin1', 0, 4) === 'EXIF') {
      const body = reader.read(at + CHUNK_HEAD_BYTES, Math.min(length, reader.size - at - CHUNK_HEAD_BYTES))
      return readExif(body)
    }
    // Chunks begin at even places.
    at += CHUNK_HEAD_BYTES + length + (length % 2)
  }
  return new Map()
}

function readExif(body: Buffer): Map<string, string> {
  const isMarked = body.toString('latin1', 0, EXIF_MARK.length) === EXIF_MARK
  const tiff = isMarked ? body.subarray(EXIF_MARK.length) : body
  const isLittle = tiff.toString('latin1', 0, 2) === 'II'
  const u16 = (at: number) => (isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at))
  const u32 = (at: number) => (isLittle ? tiff.readUInt32LE(at) : tiff.readUInt32BE(at))
  const texts = new Map<string, string>()
  const start = u32(4)
  const count = Math.min(u16(start), MAX_ENTRIES)
  let left = MAX_TEXT_BYTES
  for (let index = 0; index < count; index++) {
    const entry = start + 2 + index * ENTRY_BYTES
    const length = u32(entry + 4)
    if (u16(entry + 2) !== ASCII) continue
    // Short values lie in the entry itself.
    const at = length <= 4 ? entry + 8 : u32(entry + 8)
    let end = Math.min(at + length, tiff.length)
    left -= Math.max(0, end - at)
    if (left < 0) break
    while (end > at && tiff[end - 1] === 0) end--
    const text = tiff.toString('utf8', at, end)
    const colon = text.indexOf(':')
    if (colon > 0) texts.set(text.slice(0, colon).toLowerCase(), text.slice(colon + 1))
  }
  return texts
}
