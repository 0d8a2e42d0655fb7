/**
 * Texts that media files carry beside their content, by name: the text chunks of a PNG, the EXIF of a WebP, the comments of a FLAC, the
 * metadata of an MP4 or MOV, the header of a safetensors file. Only what lies in the way is read; a damaged file gives what was found
 * before the damage.
 */

import { inflateSync } from 'node:zlib'
import {
  BoundedReader,
  type Box,
  type ByteSource,
  boxes,
  findBox,
  HEAD_BYTES,
  TooMuchMetadataError,
} from './mp4-boxes.ts'

// The comments of a FLAC file, which are written `name=text`.

const FIRST_BLOCK = 4
const BLOCK_HEAD_BYTES = 4
const COMMENTS = 4
const MAX_COMMENTS = 10_000

function readFlacTexts(reader: BoundedReader): Map<string, string> {
  for (let at = FIRST_BLOCK; at + BLOCK_HEAD_BYTES <= reader.size; ) {
    const head = reader.read(at, BLOCK_HEAD_BYTES)
    const isLast = (head[0] & 0x80) !== 0
    const length = head.readUIntBE(1, 3)
    if ((head[0] & 0x7f) === COMMENTS) return readComments(reader.read(at + BLOCK_HEAD_BYTES, length))
    if (isLast) break
    at += BLOCK_HEAD_BYTES + length
  }
  return new Map()
}

function readComments(body: Buffer): Map<string, string> {
  const texts = new Map<string, string>()
  let at = 4 + body.readUInt32LE(0)
  const count = Math.min(body.readUInt32LE(at), MAX_COMMENTS)
  at += 4
  for (let index = 0; index < count; index++) {
    const length = body.readUInt32LE(at)
    const comment = body.toString('utf8', at + 4, at + 4 + length)
    const equals = comment.indexOf('=')
    if (equals > 0) texts.set(comment.slice(0, equals).toLowerCase(), comment.slice(equals + 1))
    at += 4 + length
  }
  return texts
}

// The metadata of an MP4 or MOV: names in `keys`, values in `ilst`, both in a `meta` box of the movie or of its user data. Some
// programs write one JSON object into the comment instead, whose members then are the texts.

const COMMENT = '\xa9cmt'
// A value begins with its kind and its language.
const DATA_HEAD_BYTES = 8
const MAX_TEXT_BYTES = 33_554_432

function readMp4Texts(reader: BoundedReader): Map<string, string> {
  const texts = new Map<string, string>()
  const movie = findBox(reader, { start: 0, end: reader.size }, 'moov')
  if (movie === undefined) return texts
  const userData = findBox(reader, movie, 'udta')
  for (const parent of [movie, userData]) {
    const meta = parent === undefined ? undefined : findBox(reader, parent, 'meta')
    if (meta !== undefined) readMeta(reader, meta, texts)
  }
  return texts
}

function readMeta(reader: BoundedReader, meta: Box, texts: Map<string, string>): void {
  // In MP4 the content begins with a version, in MOV with the first box.
  const isBare = reader.read(meta.start + 4, 4).toString('latin1') === 'hdlr'
  const content = { ...meta, start: isBare ? meta.start : meta.start + 4 }
  const keys = findBox(reader, content, 'keys')
  const list = findBox(reader, content, 'ilst')
  const names = keys === undefined ? [] : readKeys(reader, keys)
  if (list === undefined) return
  for (const item of boxes(reader, list.start, list.end)) {
    const data = findBox(reader, item, 'data')
    if (data === undefined || data.end - data.start > MAX_TEXT_BYTES) continue
    const text = reader.read(data.start + DATA_HEAD_BYTES, data.end - data.start - DATA_HEAD_BYTES).toString('utf8')
    const name = names[Buffer.from(item.type, 'latin1').readUInt32BE(0) - 1]
    if (name !== undefined) texts.set(name.toLowerCase(), text)
    if (item.type === COMMENT || name === 'comment') addMembers(text, texts)
  }
}

function readKeys(reader: BoundedReader, { start, end }: Box): string[] {
  const names: string[] = []
  // Version and count come first; each key is a length, a namespace and a name.
  for (let at = start + 8; at + HEAD_BYTES <= end; ) {
    const length = reader.read(at, 4).readUInt32BE(0)
    if (length < HEAD_BYTES) break
    names.push(reader.read(at + HEAD_BYTES, Math.min(length, end - at) - HEAD_BYTES).toString('utf8'))
    at += length
  }
  return names
}

function addMembers(text: string, texts: Map<string, string>): void {
  if (!text.startsWith('{')) return
  try {
    const members = JSON.parse(text) as Record<string, unknown>
    for (const [name, value] of Object.entries(members)) {
      if (!texts.has(name)) texts.set(name, typeof value === 'string' ? value : JSON.stringify(value))
    }
  } catch {
    // A comment that only looks like an object is no fault of the file.
  }
}

// The text chunks of a PNG that carry a workflow: plain, packed and international ones. All else is stepped over.

const SIGNATURE_BYTES = 8
const CHUNK_HEAD_BYTES = 8
const CHECKSUM_BYTES = 4
const MAX_KEYWORD_BYTES = 79
// Of all chunks together, and far above any workflow: a small chunk can claim to be gigabytes.
const MAX_UNPACKED_BYTES = 33_554_432

const WANTED: ReadonlySet<string> = new Set(['prompt', 'workflow'])

/** Of several with one name the first counts. */
function readPngTexts(reader: BoundedReader): Map<string, string> {
  const texts = new Map<string, string>()
  let left = MAX_UNPACKED_BYTES
  const unpack: Unpack = (bytes) => {
    const unpacked = inflateSync(bytes, { maxOutputLength: Math.max(1, left) })
    left -= unpacked.length
    return unpacked
  }
  for (let at = SIGNATURE_BYTES; at + CHUNK_HEAD_BYTES <= reader.size; ) {
    const head = reader.read(at, CHUNK_HEAD_BYTES)
    const length = head.readUInt32BE(0)
    const readText = readers.get(head.toString('latin1', 4, CHUNK_HEAD_BYTES))
    if (readText !== undefined) {
      const body = reader.read(at + CHUNK_HEAD_BYTES, Math.min(length, reader.size - at - CHUNK_HEAD_BYTES))
      const end = body.subarray(0, MAX_KEYWORD_BYTES + 1).indexOf(0)
      const name = end === -1 ? '' : body.toString('latin1', 0, end)
      const text = WANTED.has(name) && !texts.has(name) ? readText(body.subarray(end + 1), unpack) : null
      if (text !== null) texts.set(name, text)
    }
    at += CHUNK_HEAD_BYTES + length + CHECKSUM_BYTES
  }
  return texts
}

type Unpack = (bytes: Buffer) => Buffer

/** By the type of the chunk, from what follows its name. */
const readers: ReadonlyMap<string, (body: Buffer, unpack: Unpack) => string | null> = new Map([
  ['tEXt', (body) => body.toString('latin1')],
  ['zTXt', (body, unpack) => unpack(body.subarray(1)).toString('latin1')],
  ['iTXt', readInternational],
])

function readInternational(body: Buffer, unpack: Unpack): string | null {
  const language = body.indexOf(0, 2)
  const translated = language === -1 ? -1 : body.indexOf(0, language + 1)
  if (translated === -1) return null
  const rest = body.subarray(translated + 1)
  return (body[0] === 1 ? unpack(rest) : rest).toString('utf8')
}

// The free texts in the header of a safetensors file. The tensors behind the header are never read.

const LENGTH_BYTES = 8
const MAX_HEADER_BYTES = 33_554_432

function readSafetensorsTexts(reader: BoundedReader): Map<string, string> {
  const texts = new Map<string, string>()
  const length = Number(reader.read(0, LENGTH_BYTES).readBigUInt64LE(0))
  if (length > MAX_HEADER_BYTES) return texts
  try {
    const header = JSON.parse(reader.read(LENGTH_BYTES, length).toString('utf8')) as Record<string, unknown>
    const metadata = header['__metadata__']
    if (typeof metadata !== 'object' || metadata === null) return texts
    for (const [name, text] of Object.entries(metadata)) if (typeof text === 'string') texts.set(name, text)
  } catch (error) {
    // A header that is no JSON says nothing.
    if (!(error instanceof SyntaxError)) throw error
  }
  return texts
}

// The texts in the EXIF part of a WebP. Each is written `name:text` in some field that was meant for the maker of a camera.

const FIRST_CHUNK = 12
const EXIF_MARK = 'Exif\0\0'
const ENTRY_BYTES = 12
const ASCII = 2
const MAX_ENTRIES = 1_000
// Of all entries together: many may point to the same bytes.
const MAX_CHUNK_BYTES = 33_554_432

function readWebpTexts(reader: BoundedReader): Map<string, string> {
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
  let left = MAX_CHUNK_BYTES
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

export type EmbeddedTexts = ReadonlyMap<string, string>

type ReadTexts = (reader: BoundedReader) => Map<string, string>

const SNIFFED_BYTES = 16
const PNG = Buffer.from('89504e470d0a1a0a', 'hex')

/** null: no file of a kind that is known here. */
export function readEmbeddedTexts(source: ByteSource): EmbeddedTexts | null {
  const reader = new BoundedReader(source)
  const read = readerOf(reader.read(0, SNIFFED_BYTES), source.size)
  if (read === null) return null
  try {
    return read(reader)
  } catch (error) {
    // Damaged lengths lead outside of what was read; text that cannot be unpacked is no text.
    const isDamage = error instanceof RangeError || error instanceof TooMuchMetadataError
    if (isDamage || (error instanceof Error && 'code' in error)) return new Map()
    throw error
  }
}

function readerOf(head: Buffer, size: number): ReadTexts | null {
  const has = (text: string, at: number) => head.toString('latin1', at, at + text.length) === text
  if (head.subarray(0, PNG.length).equals(PNG)) return readPngTexts
  if (has('RIFF', 0) && has('WEBP', 8)) return readWebpTexts
  if (has('fLaC', 0)) return readFlacTexts
  if (has('ftyp', 4)) return readMp4Texts
  const isHeader = head.length >= 9 && head[8] === 0x7b && head.readBigUInt64LE(0) <= BigInt(size)
  return isHeader ? readSafetensorsTexts : null
}
