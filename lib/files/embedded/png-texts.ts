/** The text chunks of a PNG that carry a workflow: plain, packed and international ones. All else is stepped over. */
import { inflateSync } from 'node:zlib'
import type { BoundedReader } from './byte-source.ts'

const SIGNATURE_BYTES = 8
const HEAD_BYTES = 8
const CHECKSUM_BYTES = 4
const MAX_KEYWORD_BYTES = 79
// Of all chunks together, and far above any workflow: a small chunk can claim to be gigabytes.
const MAX_UNPACKED_BYTES = 33_554_432

const WANTED: ReadonlySet<string> = new Set(['prompt', 'workflow'])

/** Of several with one name the first counts. */
export function readPngTexts(reader: BoundedReader): Map<string, string> {
  const texts = new Map<string, string>()
  let left = MAX_UNPACKED_BYTES
  const unpack: Unpack = (bytes) => {
    const unpacked = inflateSync(bytes, { maxOutputLength: Math.max(1, left) })
    left -= unpacked.length
    return unpacked
  }
  for (let at = SIGNATURE_BYTES; at + HEAD_BYTES <= reader.size; ) {
    const head = reader.read(at, HEAD_BYTES)
    const length = head.readUInt32BE(0)
    const readText = readers.get(head.toString('latin1', 4, HEAD_BYTES))
    if (readText !== undefined) {
      const body = reader.read(at + HEAD_BYTES, Math.min(length, reader.size - at - HEAD_BYTES))
      const end = body.subarray(0, MAX_KEYWORD_BYTES + 1).indexOf(0)
      const name = end === -1 ? '' : body.toString('latin1', 0, end)
      const text = WANTED.has(name) && !texts.has(name) ? readText(body.subarray(end + 1), unpack) : null
      if (text !== null) texts.set(name, text)
    }
    at += HEAD_BYTES + length + CHECKSUM_BYTES
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
