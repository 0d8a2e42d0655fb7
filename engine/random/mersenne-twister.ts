/** MT19937 with its classic 32-bit initialiser: the source of every random number of PyTorch on the CPU and of old NumPy. */
const SIZE = 624
const SHIFT = 397
const UPPER_BIT = 0x80000000
const LOWER_BITS = 0x7fffffff
const TWIST = 0x9908b0df

function twist(high: number, low: number, far: number): number {
  const joined = (high & UPPER_BIT) | (low & LOWER_BITS)
  return far ^ (joined >>> 1) ^ (-(joined & 1) & TWIST)
}

function temper(word: number): number {
  let bits = word ^ (word >>> 11)
  bits ^= (bits << 7) & 0x9d2c5680
  bits ^= (bits << 15) & 0xefc60000
  return bits ^ (bits >>> 18)
}

export class MersenneTwister {
  readonly #state = new Uint32Array(SIZE)
  #at = SIZE

  /** Only the low 32 bits of the seed count. */
  constructor(seed: number | bigint) {
    const state = this.#state
    state[0] = Number(BigInt.asUintN(32, BigInt(seed)))
    for (let i = 1; i < SIZE; i++) {
      const previous = state[i - 1] ^ (state[i - 1] >>> 30)
      state[i] = Math.imul(1_812_433_253, previous) + i
    }
  }

  /** The next 32 bits, unsigned. */
  next(): number {
    if (this.#at === SIZE) this.#refill()
    return temper(this.#state[this.#at++]) >>> 0
  }

  /** As many further numbers as there is room for: the same as calling `next` for each, but faster. */
  fill(target: Uint32Array): void {
    const state = this.#state
    for (let filled = 0; filled < target.length; ) {
      if (this.#at === SIZE) this.#refill()
      const from = this.#at
      const count = Math.min(SIZE - from, target.length - filled)
      for (let i = 0; i < count; i++) target[filled + i] = temper(state[from + i])
      filled += count
      this.#at = from + count
    }
  }

  #refill(): void {
    const state = this.#state
    for (let i = 0; i < SIZE - SHIFT; i++) state[i] = twist(state[i], state[i + 1], state[i + SHIFT])
    for (let i = SIZE - SHIFT; i < SIZE - 1; i++) state[i] = twist(state[i], state[i + 1], state[i + SHIFT - SIZE])
    state[SIZE - 1] = twist(state[SIZE - 1], state[0], state[SHIFT - 1])
    this.#at = 0
  }
}
