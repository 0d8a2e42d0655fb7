/** The boxes that an MP4 or MOV is made of: each has a length, a type and content, which may be boxes again. */
/** Random access to a file that is in memory or on a disk, with a bound on how much of it is looked at. */
export interface ByteSource {
  readonly size: number
  /** Fewer bytes at the end of the file. */
  read(offset: number, length: number): Uint8Array
}

/** A file that claims more metadata than anybody writes is not read any further. */
export class TooMuchMetadataError extends Error {}

export function memorySource(bytes: Uint8Array): ByteSource {
  return { size: bytes.length, read: (offset, length) => bytes.subarray(offset, offset + length) }
}

const MAX_TOTAL_BYTES = 67_108_864
const MAX_READS = 20_000

/** Reads go through here, so that no file can keep a reader busy. */
export class BoundedReader {
  readonly size: number
  readonly #source: ByteSource
  #bytes = 0
  #reads = 0

  constructor(source: ByteSource) {
    this.size = source.size
    this.#source = source
  }

  read(offset: number, length: number): Buffer {
    this.#bytes += length
    this.#reads++
    if (this.#bytes > MAX_TOTAL_BYTES || this.#reads > MAX_READS) throw new TooMuchMetadataError('too much metadata')
    if (offset < 0 || offset >= this.size || length <= 0) return Buffer.alloc(0)
    const bytes = this.#source.read(offset, Math.min(length, this.size - offset))
    return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
}

export interface Box {
  readonly type: string
  /** Of its content. */
  readonly start: number
  readonly end: number
}

export const HEAD_BYTES = 8
const LARGE_HEAD_BYTES = 16

export function* boxes(reader: BoundedReader, start: number, end: number): Generator<Box> {
  for (let at = start; at + HEAD_BYTES <= end; ) {
    const head = reader.read(at, LARGE_HEAD_BYTES)
    if (head.length < HEAD_BYTES) return
    const short = head.readUInt32BE(0)
    const headBytes = short === 1 ? LARGE_HEAD_BYTES : HEAD_BYTES
    // 1: the length follows the type; 0: up to the end of the file.
    const size = short === 1 ? Number(head.readBigUInt64BE(8)) : short === 0 ? end - at : short
    if (size < headBytes) return
    yield { type: head.toString('latin1', 4, 8), start: at + headBytes, end: Math.min(end, at + size) }
    at += size
  }
}

export function findBox(reader: BoundedReader, parent: Omit<Box, 'type'>, type: string): Box | undefined {
  for (const box of boxes(reader, parent.start, parent.end)) if (box.type === type) return box
  return undefined
}
