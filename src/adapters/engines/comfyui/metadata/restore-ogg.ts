/**
 * Ogg (opus, vorbis, flac in ogg): the comments are in the first packets, which may fill several pages. The pages are joined, the
 * names replaced at the same length, and the result is split into the same pages again, each with its checksum.
 */

import type { ByteReader } from './byte-reader.ts'
import type { NameFinder } from './rewritten-names.ts'

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
