/** Whole random numbers as NumPy's legacy generator draws them: `numpy.random.seed`, `randint`, `permutation`, `choice`. */
import { createMt19937 } from './mt19937.ts'

export interface NumpyRandom {
  /** A number from 0 to `max`, both included. 0 asks for nothing and draws nothing. `max` is below 2^32. */
  bounded(max: number): number
  /** The numbers 0 to `count` - 1 in random order. */
  permutation(count: number): number[]
}

// ComfyUI brings a seed of 64 bits into NumPy's range by this remainder.
const SEED_MODULUS = 2n ** 32n - 1n

export function createNumpyRandom(seed: number | bigint): NumpyRandom {
  const next = createMt19937(BigInt(seed) % SEED_MODULUS)

  function bounded(max: number): number {
    if (max === 0) return 0
    const mask = 0xffff_ffff >>> Math.clz32(max)
    for (;;) {
      const drawn = (next() & mask) >>> 0
      if (drawn <= max) return drawn
    }
  }

  return {
    bounded,
    permutation(count) {
      const order = Array.from({ length: count }, (_, index) => index)
      for (let last = count - 1; last > 0; last--) {
        const other = bounded(last)
        ;[order[last], order[other]] = [order[other], order[last]]
      }
      return order
    },
  }
}
