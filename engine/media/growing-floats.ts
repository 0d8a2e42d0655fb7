/**
 * Floats whose number is known only at the end, kept in pieces of the engine's own memory: a small file that unpacks to a
 * flood meets the memory limit, not the end of the process.
 */
import type { Allocate, Tensor } from '../tensor/tensor.ts'

const PIECE_FLOATS = 1_048_576

export class GrowingFloats {
  readonly #allocate: Allocate
  readonly #pieces: Tensor[] = []
  #count = 0
  // A chunk may end inside a float.
  #rest: Buffer = Buffer.alloc(0)

  constructor(allocate: Allocate) {
    this.#allocate = allocate
  }

  get count(): number {
    return this.#count
  }

  /** Little-endian floats, cut anywhere. */
  append(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const whole = bytes.length - (bytes.length % 4)
    const view = new DataView(bytes.buffer, bytes.byteOffset, whole)
    for (let at = 0; at < whole; ) {
      const within = this.#count % PIECE_FLOATS
      if (within === 0) this.#pieces.push(this.#allocate([PIECE_FLOATS]))
      const { data } = this.#pieces[this.#pieces.length - 1]
      const room = Math.min(PIECE_FLOATS - within, (whole - at) / 4)
      for (let i = 0; i < room; i++, at += 4) data[within + i] = view.getFloat32(at, true)
      this.#count += room
    }
    this.#rest = Buffer.from(bytes.subarray(whole))
  }

  at(index: number): number {
    return this.#pieces[Math.floor(index / PIECE_FLOATS)].data[index % PIECE_FLOATS]
  }
}
