/**
 * Text chunks of a PNG: `tEXt`, right after the header, in the order given. Values are ASCII by construction (JSON with
 * escapes), so the richer chunk types are never needed.
 */
import { crc32 } from 'node:zlib'
import { NodeError } from '../node-error.ts'

const SIGNATURE_BYTES = 8
const HEADER_CHUNK_BYTES = 25
const MAX_KEY_LENGTH = 79
const PRINTABLE_LATIN1 = /^[\x20-\x7e\xa1-\xff]+$/

export type PngText = readonly (readonly [key: string, value: string])[]

function textChunk(key: string, value: string): Buffer {
  if (key.length > MAX_KEY_LENGTH || !PRINTABLE_LATIN1.test(key)) {
    throw new NodeError(
      'ValueError',
      'a key of extra_pnginfo cannot be written into a PNG: use 1 to 79 Latin characters',
    )
  }
  const body = Buffer.from(`tEXt${key}\0${value}`, 'latin1')
  const chunk = Buffer.alloc(body.length + 8)
  chunk.writeUInt32BE(body.length - 4, 0)
  body.copy(chunk, 4)
  chunk.writeUInt32BE(crc32(body), body.length + 4)
  return chunk
}

/** The file with the chunks in it, in memory of its own. */
export function insertPngText(png: Uint8Array, texts: PngText): Uint8Array<ArrayBuffer> {
  const chunks = texts.map(([key, value]) => textChunk(key, value))
  const headEnd = SIGNATURE_BYTES + HEADER_CHUNK_BYTES
  const total = chunks.reduce((sum, chunk) => sum + chunk.length, png.length)
  const result = new Uint8Array(total)
  result.set(png.subarray(0, headEnd))
  let at = headEnd
  for (const chunk of chunks) {
    result.set(chunk, at)
    at += chunk.length
  }
  result.set(png.subarray(headEnd), at)
  return result
}
