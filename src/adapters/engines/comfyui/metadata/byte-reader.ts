/** Reads a stream of bytes in the pieces that a container format is made of. Only what is asked for is held in memory. */

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
