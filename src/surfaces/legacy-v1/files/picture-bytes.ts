import { ServiceError } from '../../../domain/errors.ts'

/** The whole of a stream in memory, or a refusal once it is larger than it may be. */
export async function collectBytes(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  let size = 0
  for await (const chunk of source) {
    size += chunk.byteLength
    if (size > maxBytes) throw new ServiceError('payload_too_large', `the picture has more than ${maxBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks, size)
}
