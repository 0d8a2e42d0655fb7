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
