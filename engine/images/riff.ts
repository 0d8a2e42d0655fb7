/** The chunks of a WebP file. */

export interface RiffChunk {
  readonly id: string
  readonly body: Uint8Array
}

const FORM_BYTES = 12
const CHUNK_HEAD_BYTES = 8

/** What the extended header says of the file, together with the size of the picture. */
export const WEBP_FLAGS = { animation: 0x02, exif: 0x08, alpha: 0x10 } as const

export function extendedHeader(size: { readonly width: number; readonly height: number }, flags: number): RiffChunk {
  const body = Buffer.alloc(10)
  body[0] = flags
  body.writeUIntLE(size.width - 1, 4, 3)
  body.writeUIntLE(size.height - 1, 7, 3)
  return { id: 'VP8X', body }
}

const paddedBytes = ({ body }: RiffChunk) => CHUNK_HEAD_BYTES + body.length + (body.length % 2)

export function readRiff(webp: Uint8Array): RiffChunk[] {
  const bytes = Buffer.from(webp.buffer, webp.byteOffset, webp.byteLength)
  const chunks: RiffChunk[] = []
  for (let at = FORM_BYTES; at + CHUNK_HEAD_BYTES <= bytes.length; ) {
    const start = at + CHUNK_HEAD_BYTES
    const chunk = {
      id: bytes.toString('latin1', at, at + 4),
      body: bytes.subarray(start, start + bytes.readUInt32LE(at + 4)),
    }
    chunks.push(chunk)
    at += paddedBytes(chunk)
  }
  return chunks
}

/** The chunks one after the other, each padded to an even length. */
export function joinChunks(chunks: readonly RiffChunk[]): Uint8Array<ArrayBuffer> {
  return writeInto(0, chunks)
}

export function writeRiff(chunks: readonly RiffChunk[]): Uint8Array<ArrayBuffer> {
  const result = writeInto(FORM_BYTES, chunks)
  const form = Buffer.from(result.buffer)
  form.write('RIFF', 0, 'latin1')
  form.writeUInt32LE(result.length - CHUNK_HEAD_BYTES, 4)
  form.write('WEBP', 8, 'latin1')
  return result
}

function writeInto(first: number, chunks: readonly RiffChunk[]): Uint8Array<ArrayBuffer> {
  const total = chunks.reduce((sum, chunk) => sum + paddedBytes(chunk), first)
  const result = Buffer.from(new ArrayBuffer(total))
  let at = first
  for (const chunk of chunks) {
    result.write(chunk.id, at, 'latin1')
    result.writeUInt32LE(chunk.body.length, at + 4)
    result.set(chunk.body, at + CHUNK_HEAD_BYTES)
    at += paddedBytes(chunk)
  }
  return new Uint8Array(result.buffer)
}
