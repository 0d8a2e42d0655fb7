/**
 * Matroska and WebM: the graph is in the tags of the segment, an element with its own checksum. Names are replaced at the same
 * length, so that offsets to what comes after the tags stay right; everything else passes unchanged.
 */
import { crc32 } from 'node:zlib'
import type { ByteReader } from './byte-reader.ts'
import type { NameFinder } from './rewritten-names.ts'

const SEGMENT = 0x18538067
const TAGS = 0x1254c367
const CRC = 0xbf
const CRC_ELEMENT_BYTES = 6
const MAX_TAG_BYTES = 32 * 1024 ** 2
const MAX_HEAD_BYTES = 12

interface Head {
  readonly id: number
  /** null: unknown; it ends where its parent ends or an element of a higher level begins. */
  readonly size: number | null
  readonly bytes: number
}

export async function* restoreMatroska(reader: ByteReader, finder: NameFinder): AsyncGenerator<Uint8Array> {
  while (true) {
    const head = readHead(await reader.peek(MAX_HEAD_BYTES))
    // Only the segment is entered. An element without a size cannot be stepped over.
    if (head === null || (head.size === null && head.id !== SEGMENT)) break
    yield await reader.take(head.bytes)
    if (head.id === SEGMENT || head.size === null) continue
    if (head.id === TAGS && head.size <= MAX_TAG_BYTES) yield restoreTags(await reader.take(head.size), finder)
    else yield* reader.pass(head.size)
  }
  yield* reader.rest()
}

function restoreTags(tags: Buffer, finder: NameFinder): Buffer {
  const restored = finder.restore(tags)
  if (restored === tags || restored.length !== tags.length) return tags
  const hasChecksum = restored[0] === CRC && restored[1] === 0x84
  if (hasChecksum) restored.writeUInt32LE(crc32(restored.subarray(CRC_ELEMENT_BYTES)), 2)
  return restored
}

function readHead(bytes: Buffer): Head | null {
  const idBytes = lengthOf(bytes[0])
  if (idBytes === null || idBytes > 4) return null
  const sizeBytes = lengthOf(bytes[idBytes])
  if (sizeBytes === null || idBytes + sizeBytes > bytes.length) return null
  const id = bytes.readUIntBE(0, idBytes)
  let value = BigInt(bytes[idBytes]! & (0xff >> sizeBytes))
  for (let index = 1; index < sizeBytes; index++) value = (value << 8n) | BigInt(bytes[idBytes + index]!)
  const isUnknown = value === (1n << BigInt(7 * sizeBytes)) - 1n
  return { id, size: isUnknown ? null : Number(value), bytes: idBytes + sizeBytes }
}

/** The number of leading zero bits tells how many bytes follow. */
function lengthOf(byte: number | undefined): number | null {
  return byte === undefined || byte === 0 ? null : Math.clz32(byte) - 23
}
