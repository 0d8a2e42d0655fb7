import { ServiceError } from '../../../domain/errors.ts'

/** Pictures are decoded as a whole, in memory. */
export const MAX_PICTURE_BYTES = 64 * 1024 * 1024

/** The whole of a stream in memory. Throws `payload_too_large` as soon as it is larger than allowed. */
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
