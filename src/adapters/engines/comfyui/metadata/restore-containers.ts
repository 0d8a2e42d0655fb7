/** The containers of files, and the names of a graph that are restored in each: PNG, Ogg, Matroska. Read in the pieces that they are made of. */

import { crc32 } from 'node:zlib'
import {
  CHUNK_CHECKSUM_BYTES,
  CHUNK_HEAD_BYTES,
  PNG_SIGNATURE,
  writeChunk,
} from '../../../../../lib/files/png-chunks.ts'
import type { NameFinder } from './rewritten-names.ts'

export class ByteReader {
  readonly #source: AsyncIterator<Uint8Array>
  #held: Buffer[] = []
  #heldBytes = 0
  #isOver = false

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#source = source[Symbol.asyncIterator]()
  }

  /** The next `count` bytes, without consuming them; fewer at the end. */
  async peek(count: number): Promise<Buffer> {
    while (this.#heldBytes < count && (await this.#pull()));
    if (this.#held.length > 1) this.#held = [Buffer.concat(this.#held)]
    return (this.#held[0] ?? Buffer.alloc(0)).subarray(0, count)
  }

  /** The next `count` bytes; fewer at the end. */
  async take(count: number): Promise<Buffer> {
    const taken = await this.peek(count)
    this.#drop(taken.length)
    return taken
  }

  /** The next `count` bytes as they come. */
  async *pass(count: number): AsyncGenerator<Uint8Array> {
    let left = count
    while (left > 0 && (this.#heldBytes > 0 || (await this.#pull()))) {
      const first = this.#held[0] ?? Buffer.alloc(0)
      const part = first.subarray(0, left)
      this.#drop(part.length)
      left -= part.length
      yield part
    }
  }

  rest(): AsyncGenerator<Uint8Array> {
    return this.pass(Number.POSITIVE_INFINITY)
  }

  async close(): Promise<void> {
    if (!this.#isOver) await this.#source.return?.()
  }

  async #pull(): Promise<boolean> {
    if (this.#isOver) return false
    const step = await this.#source.next()
    this.#isOver = step.done === true
    if (step.done) return false
    const { buffer, byteOffset, byteLength } = step.value
    if (byteLength > 0) this.#held.push(Buffer.from(buffer, byteOffset, byteLength))
    this.#heldBytes += byteLength
    return true
  }

  #drop(count: number): void {
    this.#heldBytes -= count
    let left = count
    while (left > 0) {
      const first = this.#held[0]
      if (first === undefined) return
      if (first.length > left) {
        this.#held[0] = first.subarray(left)
        return
      }
      left -= first.length
      this.#held.shift()
    }
  }
}

/** PNG, animated or not: text chunks are rewritten, with length and checksum; all others pass unchanged. */
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

/**
 * Ogg (opus, vorbis, flac in ogg): the comments are in the first packets, which may fill several pages. The pages are joined, the
 * names replaced at the same length, and the result is split into the same pages again, each with its checksum.
 */
const HEAD_BYTES = 27
const CRC_AT = 22
const SEGMENTS_AT = 26
const GRANULE_AT = 6
const MAX_HEADER_BYTES = 32 * 1024 ** 2
const MAGIC = Buffer.from('OggS')

interface Page {
  /** Whole, header included. */
  readonly bytes: Buffer
  readonly bodyAt: number
}

export async function* restoreOgg(reader: ByteReader, finder: NameFinder): AsyncGenerator<Uint8Array> {
  const pages: Page[] = []
  let total = 0
  while (total < MAX_HEADER_BYTES && (await isHeaderPage(reader))) {
    const page = await takePage(reader)
    pages.push(page)
    total += page.bytes.length
  }
  const body = Buffer.concat(pages.map(({ bytes, bodyAt }) => bytes.subarray(bodyAt)))
  const restored = finder.restore(body)
  if (restored === body || restored.length !== body.length) {
    for (const { bytes } of pages) yield bytes
  } else yield* layOut(pages, restored)
  yield* reader.rest()
}

/** Header pages have the time position 0; -1 marks a page on which no packet ends. */
async function isHeaderPage(reader: ByteReader): Promise<boolean> {
  const head = await reader.peek(HEAD_BYTES)
  if (head.length < HEAD_BYTES || !head.subarray(0, 4).equals(MAGIC)) return false
  const granule = head.readBigInt64LE(GRANULE_AT)
  return granule === 0n || granule === -1n
}

async function takePage(reader: ByteReader): Promise<Page> {
  const count = (await reader.peek(HEAD_BYTES))[SEGMENTS_AT] ?? 0
  const bodyAt = HEAD_BYTES + count
  const head = await reader.peek(bodyAt)
  const bodyBytes = head.subarray(HEAD_BYTES).reduce((sum, size) => sum + size, 0)
  return { bytes: await reader.take(bodyAt + bodyBytes), bodyAt }
}

function* layOut(pages: readonly Page[], body: Buffer): Generator<Uint8Array> {
  let from = 0
  for (const { bytes, bodyAt } of pages) {
    const part = body.subarray(from, from + bytes.length - bodyAt)
    from += part.length
    if (part.equals(bytes.subarray(bodyAt))) {
      yield bytes
      continue
    }
    const page = Buffer.concat([bytes.subarray(0, bodyAt), part])
    page.writeUInt32LE(0, CRC_AT)
    page.writeUInt32LE(checksum(page), CRC_AT)
    yield page
  }
}

const POLYNOMIAL = 0x04c11db7
const table = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte << 24
  for (let bit = 0; bit < 8; bit++) value = value & 0x80000000 ? (value << 1) ^ POLYNOMIAL : value << 1
  return value >>> 0
})

/** The CRC of Ogg differs from that of zip and PNG: the bits run the other way, and nothing is inverted. */
function checksum(page: Buffer): number {
  let value = 0
  for (const byte of page) value = ((value << 8) ^ table[((value >>> 24) ^ byte) & 0xff]!) >>> 0
  return value
}

/**
 * Matroska and WebM: the graph is in the tags of the segment, an element with its own checksum. Names are replaced at the same
 * length, so that offsets to what comes after the tags stay right; everything else passes unchanged.
 */
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
