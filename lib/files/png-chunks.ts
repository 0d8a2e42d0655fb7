/** A PNG as a list of chunks, and back. A chunk is its length, its type, its body and a checksum of type and body. */
import { crc32 } from 'node:zlib'

export interface PngChunk {
  readonly type: string
  readonly body: Uint8Array
}

/** A chunk as it is stored in a file. */
interface FoundChunk extends PngChunk {
  /** With its head and its checksum. */
  readonly whole: Uint8Array
}

export const PNG_SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
/** Length and type. */
export const CHUNK_HEAD_BYTES = 8
export const CHUNK_CHECKSUM_BYTES = 4

/** Views into the file, no copies. Empty when the file is no PNG; a truncated last chunk is left out. */
export function readChunks(png: Uint8Array): FoundChunk[] {
  const file = Buffer.from(png.buffer, png.byteOffset, png.byteLength)
  if (!file.subarray(0, PNG_SIGNATURE.length).equals(PNG_SIGNATURE)) return []
  const chunks: FoundChunk[] = []
  for (let at = PNG_SIGNATURE.length; at + CHUNK_HEAD_BYTES <= file.length; ) {
    const bodyEnd = at + CHUNK_HEAD_BYTES + file.readUInt32BE(at)
    const end = bodyEnd + CHUNK_CHECKSUM_BYTES
    if (end > file.length) break
    const type = file.toString('latin1', at + 4, at + CHUNK_HEAD_BYTES)
    chunks.push({ type, body: file.subarray(at + CHUNK_HEAD_BYTES, bodyEnd), whole: file.subarray(at, end) })
    at = end
  }
  return chunks
}

const sizeOf = ({ body }: PngChunk) => CHUNK_HEAD_BYTES + body.length + CHUNK_CHECKSUM_BYTES

/** Returns the offset at which the chunk ends. */
function putChunk(target: Buffer, at: number, { type, body }: PngChunk): number {
  const bodyEnd = at + CHUNK_HEAD_BYTES + body.length
  target.writeUInt32BE(body.length, at)
  target.write(type, at + 4, 'latin1')
  target.set(body, at + CHUNK_HEAD_BYTES)
  target.writeUInt32BE(crc32(target.subarray(at + 4, bodyEnd)), bodyEnd)
  return bodyEnd + CHUNK_CHECKSUM_BYTES
}

export function writeChunk(chunk: PngChunk): Buffer {
  const bytes = Buffer.alloc(sizeOf(chunk))
  putChunk(bytes, 0, chunk)
  return bytes
}

/** A whole file, in memory of its own. */
export function writeChunks(chunks: readonly PngChunk[]): Uint8Array<ArrayBuffer> {
  const total = chunks.reduce((sum, chunk) => sum + sizeOf(chunk), PNG_SIGNATURE.length)
  const file = Buffer.from(new ArrayBuffer(total))
  let at = PNG_SIGNATURE.copy(file)
  for (const chunk of chunks) at = putChunk(file, at, chunk)
  return new Uint8Array(file.buffer)
}
