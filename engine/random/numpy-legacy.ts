/** NumPy's old global generator, `numpy.random.seed(…)`, as far as nodes draw from it. */
import { MersenneTwister } from './mersenne-twister.ts'

// Upstream takes seeds modulo this, one short of all 32-bit numbers.
const SEEDS = 2n ** 32n - 1n

interface NumpyLegacy {
  /** An integer of 0..most, both included. Draws nothing when there is no choice. */
  bounded(most: number): number
  /** The numbers 0..count-1 in random order. */
  permutation(count: number): number[]
}

export function seedNumpy(seed: number | bigint): NumpyLegacy {
  const bits = new MersenneTwister(BigInt(seed) % SEEDS)

  function bounded(most: number): number {
    if (most === 0) return 0
    const mask = 0xffffffff >>> Math.clz32(most)
    for (;;) {
      const drawn = (bits.next() & mask) >>> 0
      if (drawn <= most) return drawn
    }
  }

  return {
    bounded,
    permutation(count) {
      const order = Array.from({ length: count }, (_, index) => index)
      for (let i = count - 1; i > 0; i--) {
        const j = bounded(i)
        const kept = order[i]
        order[i] = order[j]
        order[j] = kept
      }
      return order
    },
  }
}
