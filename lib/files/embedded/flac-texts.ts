/** The comments of a FLAC file, which are written `name=text`. */
import type { BoundedReader } from './byte-source.ts'

const FIRST_BLOCK = 4
const BLOCK_HEAD_BYTES = 4
const COMMENTS = 4
const MAX_COMMENTS = 10_000

export function readFlacTexts(reader: BoundedReader): Map<string, string> {
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
