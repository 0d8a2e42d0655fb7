/** PNG, animated or not: text chunks are rewritten, with length and checksum; all others pass unchanged. */
import {
  CHUNK_CHECKSUM_BYTES,
  CHUNK_HEAD_BYTES,
  PNG_SIGNATURE,
  writeChunk,
} from '../../../../../lib/files/png-chunks.ts'
import type { ByteReader } from './byte-reader.ts'
import type { NameFinder } from './rewritten-names.ts'

const MAX_TEXT_BYTES = 32 * 1024 ** 2
// `comf` is ComfyUI's own, in animated pictures.
const TEXT_CHUNKS: ReadonlySet<string> = new Set(['tEXt', 'iTXt', 'comf', 'eXIf'])

export async function* restorePng(reader: ByteReader, finder: NameFinder): AsyncGenerator<Uint8Array> {
  yield* reader.pass(PNG_SIGNATURE.length)
  while (true) {
    const head = await reader.take(CHUNK_HEAD_BYTES)
    if (head.length < CHUNK_HEAD_BYTES) {
      yield head
      return
    }
    const size = head.readUInt32BE(0)
    const type = head.toString('latin1', 4)
    if (!TEXT_CHUNKS.has(type) || size > MAX_TEXT_BYTES) {
      yield head
      yield* reader.pass(size + CHUNK_CHECKSUM_BYTES)
      continue
    }
    const chunk = await reader.take(size + CHUNK_CHECKSUM_BYTES)
    const data = chunk.subarray(0, size)
    const restored = chunk.length < size + CHUNK_CHECKSUM_BYTES ? data : finder.restore(data)
    yield restored === data ? Buffer.concat([head, chunk]) : writeChunk({ type, body: restored })
  }
}
