/**
 * The metadata of an MP4 or MOV: names in `keys`, values in `ilst`, both in a `meta` box of the movie or of its user data. Some
 * programs write one JSON object into the comment instead, whose members then are the texts.
 */
import type { BoundedReader } from './byte-source.ts'
import { type Box, boxes, findBox, HEAD_BYTES } from './mp4-boxes.ts'

const COMMENT = '\xa9cmt'
// A value begins with its kind and its language.
const DATA_HEAD_BYTES = 8
const MAX_TEXT_BYTES = 33_554_432

export function readMp4Texts(reader: BoundedReader): Map<string, string> {
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
