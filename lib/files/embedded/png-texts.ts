/** The text chunks of a PNG: plain, packed and international ones. Pictures themselves are stepped over. */
import { inflateSync } from 'node:zlib'
import type { BoundedReader } from './byte-source.ts'

const SIGNATURE_BYTES = 8
const HEAD_BYTES = 8
const CHECKSUM_BYTES = 4
// Far above any workflow; a small chunk can claim to be gigabytes.
const MAX_UNPACKED_BYTES = 33_554_432

export function readPngTexts(reader: BoundedReader): Map<string, string> {
  const texts = new Map<string, string>()
  for (let at = SIGNATURE_BYTES; at + HEAD_BYTES <= reader.size; ) {
    const head = reader.read(at, HEAD_BYTES)
    const length = head.readUInt32BE(0)
    const type = head.toString('latin1', 4, HEAD_BYTES)
    const text = readers[type]?.(reader.read(at + HEAD_BYTES, Math.min(length, reader.size - at - HEAD_BYTES)))
    if (text !== undefined && text !== null) texts.set(text[0], text[1])
    at += HEAD_BYTES + length + CHECKSUM_BYTES
  }
  return texts
}

type Text = readonly [name: string, text: string] | null

const readers: Readonly<Partial<Record<string, (body: Buffer) => Text>>> = {
  tEXt(body) {
    const end = body.indexOf(0)
    return end === -1 ? null : [body.toString('latin1', 0, end), body.toString('latin1', end + 1)]
  },
  zTXt(body) {
    const end = body.indexOf(0)
    if (end === -1) return null
    return [body.toString('latin1', 0, end), unpack(body.subarray(end + 2)).toString('latin1')]
  },
  iTXt(body) {
    const end = body.indexOf(0)
    const language = body.indexOf(0, end + 3)
    const translated = language === -1 ? -1 : body.indexOf(0, language + 1)
    if (end === -1 || translated === -1) return null
    const rest = body.subarray(translated + 1)
    const isPacked = body[end + 1] === 1
    return [body.toString('latin1', 0, end), (isPacked ? unpack(rest) : rest).toString('utf8')]
  },
}

function unpack(bytes: Buffer): Buffer {
  return inflateSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES })
}
