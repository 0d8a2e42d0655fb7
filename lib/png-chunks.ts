/** A PNG as a list of chunks, and back. */
import { crc32 } from 'node:zlib'

export interface PngChunk {
  readonly type: string
  readonly body: Uint8Array
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])

/** The chunks of a file that we made ourselves; views into it, no copies. */
export function readChunks(png: Uint8Array): PngChunk[] {
  const bytes = Buffer.from(png.buffer, png.byteOffset, png.byteLength)
  const chunks: PngChunk[] = []
  for (let at = SIGNATURE.length; at + 12 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at)
    chunks.push({ type: bytes.toString('latin1', at + 4, at + 8), body: bytes.subarray(at + 8, at + 8 + length) })
    at += 12 + length
  }
  return chunks
}

export function writeChunks(chunks: readonly PngChunk[]): Uint8Array<ArrayBuffer> {
  const total = chunks.reduce((sum, { body }) => sum + body.length + 12, SIGNATURE.length)
  const result = Buffer.from(new ArrayBuffer(total))
  let at = SIGNATURE.copy(result)
  for (const { type, body } of chunks) {
    result.writeUInt32BE(body.length, at)
    result.write(type, at + 4, 'latin1')
    result.set(body, at + 8)
    result.writeUInt32BE(crc32(result.subarray(at + 4, at + 8 + body.length)), at + 8 + body.length)
    at += 12 + body.length
  }
  return new Uint8Array(result.buffer)
}
