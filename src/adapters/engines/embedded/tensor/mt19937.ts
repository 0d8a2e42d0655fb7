/** The Mersenne Twister (MT19937) with its classic seeding: the generator behind both PyTorch's and NumPy's numbers. */

const STATE_SIZE = 624
const SHIFT = 397
const SEED_FACTOR = 1_812_433_253
const TWIST = 0x9908b0df
const UPPER = 0x80000000
const LOWER = 0x7fffffff

/** The next 32 random bits, as a number from 0 to 2^32 - 1. */
export type NextBits = () => number

function seedState(seed: number): Uint32Array {
  const state = new Uint32Array(STATE_SIZE)
  state[0] = seed
  for (let i = 1; i < STATE_SIZE; i++) {
    const previous = state[i - 1] ^ (state[i - 1] >>> 30)
    state[i] = Math.imul(SEED_FACTOR, previous) + i
  }
  return state
}

function twisted(high: number, low: number): number {
  const joined = (high & UPPER) | (low & LOWER)
  // -1 or 0 as a mask: the bits are random, so a branch would be guessed wrong every other time.
  return (joined >>> 1) ^ (-(joined & 1) & TWIST)
}

/** Makes the next 624 words. In three runs, so that no index has to be wrapped. */
function twist(state: Uint32Array): void {
  const turn = STATE_SIZE - SHIFT
  for (let i = 0; i < turn; i++) state[i] = state[i + SHIFT] ^ twisted(state[i], state[i + 1])
  for (let i = turn; i < STATE_SIZE - 1; i++) state[i] = state[i - turn] ^ twisted(state[i], state[i + 1])
  state[STATE_SIZE - 1] = state[SHIFT - 1] ^ twisted(state[STATE_SIZE - 1], state[0])
}

/** Only the low 32 bits of the seed count. */
export function createMt19937(seed: number | bigint): NextBits {
  const state = seedState(Number(BigInt.asUintN(32, BigInt(seed))))
  let at = STATE_SIZE
  return () => {
    if (at === STATE_SIZE) {
      twist(state)
      at = 0
    }
    let bits = state[at++]
    bits ^= bits >>> 11
    bits ^= (bits << 7) & 0x9d2c5680
    bits ^= (bits << 15) & 0xefc60000
    return (bits ^ (bits >>> 18)) >>> 0
  }
}
