/** How many bits go out at a time: with up to seven that wait they fit into a 32-bit integer. */
export const MAX_WRITE = 24

/** Bits, most significant first, into memory that grows as needed and is used again after `reset`. */
export class BitWriter {
  #bytes = new Uint8Array(16_384)
  #length = 0
  // Bits that do not fill a byte yet, right-aligned.
  #pending = 0
  #pendingBits = 0

  reset(): void {
    this.#length = 0
    this.#pending = 0
    this.#pendingBits = 0
  }

  /** The lowest `bits` bits of a value; at most MAX_WRITE at a time. */
  write(value: number, bits: number): void {
    let pending = (this.#pending << bits) | (value & ((1 << bits) - 1))
    let held = this.#pendingBits + bits
    if (this.#length + 4 > this.#bytes.length) this.#grow()
    while (held >= 8) {
      held -= 8
      this.#bytes[this.#length++] = (pending >>> held) & 0xff
    }
    pending &= (1 << held) - 1
    this.#pending = pending
    this.#pendingBits = held
  }

  writeZeros(count: number): void {
    let left = count
    for (; left > MAX_WRITE; left -= MAX_WRITE) this.write(0, MAX_WRITE)
    if (left > 0) this.write(0, left)
  }

  /** Zeros up to the next whole byte. */
  align(): void {
    if (this.#pendingBits > 0) this.write(0, 8 - this.#pendingBits)
  }

  /** What has been written; valid until the next write. */
  bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  #grow(): void {
    const larger = new Uint8Array(this.#bytes.length * 2)
    larger.set(this.#bytes)
    this.#bytes = larger
  }
}
