/** PNG, animated or not: text chunks are rewritten, with length and checksum; all others pass unchanged. */
import { crc32 } from 'node:zlib'
import type { ByteReader } from './byte-reader.ts'
import type { NameFinder } from './rewritten-names.ts'

const SIGNATURE_BYTES = 8
const HEAD_BYTES = 8
const CRC_BYTES = 4
const MAX_TEXT_BYTES = 32 * 1024 ** 2
// `comf` is ComfyUI's own, in animated pictures.
const TEXT_CHUNKS: ReadonlySet<string> = new Set(['tEXt', 'iTXt', 'comf', 'eXIf'])

export async function* restorePng(reader: ByteReader, finder: NameFinder): AsyncGenerator<Uint8Array> {
  yield* reader.pass(SIGNATURE_BYTES)
  while (true) {
    const head = await reader.take(HEAD_BYTES)
    if (head.length < HEAD_BYTES) {
      yield head
      return
    }
    const size = head.readUInt32BE(0)
    if (!TEXT_CHUNKS.has(head.toString('latin1', 4)) || size > MAX_TEXT_BYTES) {
      yield head
      yield* reader.pass(size + CRC_BYTES)
      continue
    }
    const chunk = await reader.take(size + CRC_BYTES)
    const data = chunk.subarray(0, size)
    const restored = chunk.length < size + CRC_BYTES ? data : finder.restore(data)
    yield restored === data ? Buffer.concat([head, chunk]) : writeChunk(head.subarray(4), restored)
  }
}

function writeChunk(type: Buffer, data: Buffer): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(data.length)
  const checked = Buffer.concat([type, data])
  const crc = Buffer.alloc(CRC_BYTES)
  crc.writeUInt32BE(crc32(checked))
  return Buffer.concat([size, checked, crc])
}
