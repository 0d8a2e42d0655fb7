/** Changes of a file that leave its length as it is, and the bounded reading that finds where they belong. */

/** Zeros where no bytes are given. */
export interface Patch {
  readonly at: number
  readonly length: number
  readonly bytes?: Uint8Array
}

/** Fewer bytes at the end of the file. */
export type ReadPart = (offset: number, length: number) => Promise<Buffer>

/** A file that claims more parts than anybody writes is not read any further. */
export class TooManyPartsError extends Error {}

const WINDOW_BYTES = 65_536
const MAX_BYTES = 134_217_728
const MAX_WINDOWS = 20_000

/** Small reads that follow each other become few large ones. */
export class PartReader {
  readonly size: number
  readonly #read: ReadPart
  #window: Buffer = Buffer.alloc(0)
  #start = 0
  #bytes = 0
  #windows = 0

  constructor(size: number, read: ReadPart) {
    this.size = size
    this.#read = read
  }

  /** Shorter at the end of the file. */
  async read(offset: number, length: number): Promise<Buffer> {
    const wanted = Math.max(0, Math.min(length, this.size - offset))
    const from = offset - this.#start
    if (from >= 0 && from + wanted <= this.#window.length) return this.#window.subarray(from, from + wanted)
    if (wanted === 0) return Buffer.alloc(0)
    const taken = Math.min(Math.max(wanted, WINDOW_BYTES), this.size - offset)
    this.#bytes += taken
    if (this.#bytes > MAX_BYTES || ++this.#windows > MAX_WINDOWS) throw new TooManyPartsError('too many parts')
    this.#window = await this.#read(offset, taken)
    this.#start = offset
    return this.#window.subarray(0, wanted)
  }
}

/** What `source` gives from `start` on, with the patches in it. `patches` rise and do not overlap. */
export async function* applyPatches(
  source: AsyncIterable<Uint8Array>,
  patches: readonly Patch[],
  start = 0,
): AsyncGenerator<Uint8Array> {
  let from = start
  let next = patches.findIndex(({ at, length }) => at + length > start)
  for await (const piece of source) {
    const end = from + piece.length
    let changed: Buffer | null = null
    while (next >= 0 && next < patches.length && patches[next].at < end) {
      const { at, length, bytes } = patches[next]
      changed ??= Buffer.from(piece)
      const [first, last] = [Math.max(at, from), Math.min(at + length, end)]
      if (bytes === undefined) changed.fill(0, first - from, last - from)
      else changed.set(bytes.subarray(first - at, last - at), first - from)
      if (at + length > end) break
      next++
    }
    from = end
    yield changed ?? piece
  }
}
