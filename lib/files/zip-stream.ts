/**
 * A zip archive as a stream: files as they are, without compression, each read when its turn comes. Sizes are known beforehand, check
 * sums only behind the bytes. Archives and files beyond 4 GiB use the 64-bit fields of the format.
 */
import { crc32 } from 'node:zlib'

export interface ZipFile {
  /** With `/` between folders; safe names are the caller's business. */
  readonly name: string
  readonly sizeBytes: number
  readonly modifiedAt: Date
  open(): Promise<AsyncIterable<Uint8Array>>
}

interface Written {
  readonly file: ZipFile
  readonly name: Buffer
  readonly offset: number
  readonly crc: number
  readonly sizeBytes: number
}

const LIMIT_32 = 0xffffffff
const LIMIT_16 = 0xffff
// The check sum and the size follow the bytes; names are UTF-8.
const FLAGS = 0x0808
const VERSION = 45

export async function* zipStream(files: readonly ZipFile[]): AsyncGenerator<Uint8Array, void> {
  const written: Written[] = []
  let offset = 0
  for (const file of files) {
    const name = Buffer.from(file.name)
    const begin = offset
    const head = localHeader(file, name)
    yield head
    let crc = 0
    let sizeBytes = 0
    for await (const chunk of await file.open()) {
      crc = crc32(chunk, crc)
      sizeBytes += chunk.byteLength
      yield chunk
    }
    if (sizeBytes !== file.sizeBytes)
      throw new Error(`${file.name} has ${sizeBytes} bytes instead of ${file.sizeBytes}`)
    const tail = descriptor(crc, sizeBytes)
    yield tail
    offset += head.byteLength + sizeBytes + tail.byteLength
    written.push({ file, name, offset: begin, crc, sizeBytes })
  }
  const directory = Buffer.concat(written.map(directoryEntry))
  yield directory
  yield endOfDirectory(written.length, directory.byteLength, offset)
}

/** Two bytes each of time and date, from 1980 on. */
function dosTime(at: Date): [time: number, date: number] {
  const year = Math.max(1980, Math.min(2107, at.getUTCFullYear()))
  const time = (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1)
  return [time, ((year - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate()]
}

function localHeader({ modifiedAt, sizeBytes }: ZipFile, name: Buffer): Buffer {
  const isLarge = sizeBytes >= LIMIT_32
  const extra = isLarge ? zip64Extra([0, 0]) : Buffer.alloc(0)
  const head = Buffer.alloc(30)
  const [time, date] = dosTime(modifiedAt)
  head.writeUInt32LE(0x04034b50, 0)
  head.writeUInt16LE(VERSION, 4)
  head.writeUInt16LE(FLAGS, 6)
  head.writeUInt16LE(time, 10)
  head.writeUInt16LE(date, 12)
  if (isLarge) head.writeUInt32LE(LIMIT_32, 18)
  if (isLarge) head.writeUInt32LE(LIMIT_32, 22)
  head.writeUInt16LE(name.byteLength, 26)
  head.writeUInt16LE(extra.byteLength, 28)
  return Buffer.concat([head, name, extra])
}

function descriptor(crc: number, sizeBytes: number): Buffer {
  const isLarge = sizeBytes >= LIMIT_32
  const tail = Buffer.alloc(isLarge ? 24 : 16)
  tail.writeUInt32LE(0x08074b50, 0)
  tail.writeUInt32LE(crc, 4)
  for (const place of [0, 1]) {
    if (isLarge) tail.writeBigUInt64LE(BigInt(sizeBytes), 8 + 8 * place)
    else tail.writeUInt32LE(sizeBytes, 8 + 4 * place)
  }
  return tail
}

function zip64Extra(values: readonly number[]): Buffer {
  const extra = Buffer.alloc(4 + 8 * values.length)
  extra.writeUInt16LE(1, 0)
  extra.writeUInt16LE(8 * values.length, 2)
  for (const [index, value] of values.entries()) extra.writeBigUInt64LE(BigInt(value), 4 + 8 * index)
  return extra
}

function directoryEntry({ file, name, offset, crc, sizeBytes }: Written): Buffer {
  const isLarge = sizeBytes >= LIMIT_32
  const isFar = offset >= LIMIT_32
  const large = [...(isLarge ? [sizeBytes, sizeBytes] : []), ...(isFar ? [offset] : [])]
  const extra = large.length === 0 ? Buffer.alloc(0) : zip64Extra(large)
  const entry = Buffer.alloc(46)
  const [time, date] = dosTime(file.modifiedAt)
  entry.writeUInt32LE(0x02014b50, 0)
  entry.writeUInt16LE(VERSION, 4)
  entry.writeUInt16LE(VERSION, 6)
  entry.writeUInt16LE(FLAGS, 8)
  entry.writeUInt16LE(time, 12)
  entry.writeUInt16LE(date, 14)
  entry.writeUInt32LE(crc, 16)
  entry.writeUInt32LE(isLarge ? LIMIT_32 : sizeBytes, 20)
  entry.writeUInt32LE(isLarge ? LIMIT_32 : sizeBytes, 24)
  entry.writeUInt16LE(name.byteLength, 28)
  entry.writeUInt16LE(extra.byteLength, 30)
  entry.writeUInt32LE(isFar ? LIMIT_32 : offset, 42)
  return Buffer.concat([entry, name, extra])
}

function endOfDirectory(count: number, sizeBytes: number, offset: number): Buffer {
  const isLarge = count >= LIMIT_16 || sizeBytes >= LIMIT_32 || offset >= LIMIT_32
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50, 0)
  end.writeUInt16LE(isLarge ? LIMIT_16 : count, 8)
  end.writeUInt16LE(isLarge ? LIMIT_16 : count, 10)
  end.writeUInt32LE(isLarge ? LIMIT_32 : sizeBytes, 12)
  end.writeUInt32LE(isLarge ? LIMIT_32 : offset, 16)
  if (!isLarge) return end
  const large = Buffer.alloc(56 + 20)
  large.writeUInt32LE(0x06064b50, 0)
  large.writeBigUInt64LE(44n, 4)
  large.writeUInt16LE(VERSION, 12)
  large.writeUInt16LE(VERSION, 14)
  large.writeBigUInt64LE(BigInt(count), 24)
  large.writeBigUInt64LE(BigInt(count), 32)
  large.writeBigUInt64LE(BigInt(sizeBytes), 40)
  large.writeBigUInt64LE(BigInt(offset), 48)
  large.writeUInt32LE(0x07064b50, 56)
  large.writeBigUInt64LE(BigInt(offset + sizeBytes), 64)
  large.writeUInt32LE(1, 72)
  return Buffer.concat([large, end])
}
