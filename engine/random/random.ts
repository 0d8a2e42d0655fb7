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

// NumPy's old global generator, `numpy.random.seed(…)`, as far as nodes draw from it.

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

// PyTorch's normal numbers on the CPU: the same uniforms in the same order, made normal by the Box-Muller transform in
// blocks of sixteen. Logarithm, sine and cosine come from tables with short series around their entries, exact to far
// beyond single precision: the library functions would take most of the time.

const BLOCK = 16
const HALF = 8
const UNIFORM_BITS = 24
const UNIFORMS = 2 ** UNIFORM_BITS
const UNIFORM_MASK = UNIFORMS - 1
// Words drawn at a time: a fraction of a millisecond of work.
const CHUNK = 16_384
const TABLE_BITS = 12
const TABLE_SIZE = 2 ** TABLE_BITS
const REST_BITS = UNIFORM_BITS - TABLE_BITS
const REST_MASK = (1 << REST_BITS) - 1
const REST_UNIT = 2 ** -REST_BITS

const SINES = Float64Array.from({ length: TABLE_SIZE }, (_, i) => Math.sin((2 * Math.PI * i) / TABLE_SIZE))
const COSINES = Float64Array.from({ length: TABLE_SIZE }, (_, i) => Math.cos((2 * Math.PI * i) / TABLE_SIZE))
const LOGS = Float64Array.from({ length: TABLE_SIZE }, (_, i) => Math.log(1 + i / TABLE_SIZE))
const RECIPROCALS = Float64Array.from({ length: TABLE_SIZE }, (_, i) => 1 / (TABLE_SIZE + i))
const STEP_ANGLE = (2 * Math.PI) / UNIFORMS

/** ln(n / 2^24) for 1 <= n <= 2^24. */
function logOfFraction(n: number): number {
  const exponent = 31 - Math.clz32(n)
  const mantissa = n << (UNIFORM_BITS - exponent)
  const entry = (mantissa >>> REST_BITS) & (TABLE_SIZE - 1)
  const rest = (mantissa & REST_MASK) * REST_UNIT * RECIPROCALS[entry]
  return LOGS[entry] + rest * (1 - rest * (0.5 - rest * (1 / 3))) + (exponent - UNIFORM_BITS) * Math.LN2
}

/** Sixteen words of 32 random bits, of which 24 count, become sixteen normal numbers. */
function transform(words: Uint32Array, from: number, { out, at }: { out: Float32Array; at: number }): void {
  for (let j = 0; j < HALF; j++) {
    const radius = Math.sqrt(-2 * logOfFraction(UNIFORMS - (words[from + j] & UNIFORM_MASK)))
    const uniform = words[from + j + HALF] & UNIFORM_MASK
    const entry = uniform >>> REST_BITS
    const angle = (uniform & REST_MASK) * STEP_ANGLE
    const square = angle * angle
    const sine = angle * (1 - square * (1 / 6))
    const cosine = 1 - square * (0.5 - square * (1 / 24))
    out[at + j] = radius * (COSINES[entry] * cosine - SINES[entry] * sine)
    out[at + j + HALF] = radius * (SINES[entry] * cosine + COSINES[entry] * sine)
  }
}

/** Few numbers are made in pairs, from uniforms of 53 bits. */
function fillFew(out: Float32Array, bits: MersenneTwister): void {
  // The high word comes first, and only 53 bits of the two count.
  const uniform = () => (bits.next() % 2 ** 21) * 2 ** -21 + bits.next() * 2 ** -53
  for (let i = 0; i < out.length; i += 2) {
    const angle = 2 * Math.PI * uniform()
    const radius = Math.sqrt(-2 * Math.log1p(-uniform()))
    out[i] = radius * Math.cos(angle)
    if (i + 1 < out.length) out[i + 1] = radius * Math.sin(angle)
  }
}

/** `torch.randn` with a generator of this seed, in the order of memory. `checkpoint` is called now and then. */
export function fillTorchNormal(out: Float32Array, seed: number | bigint, checkpoint: () => void): void {
  const bits = new MersenneTwister(seed)
  if (out.length < BLOCK) {
    fillFew(out, bits)
    return
  }
  const words = new Uint32Array(CHUNK)
  const whole = out.length - (out.length % BLOCK)
  for (let start = 0; start < whole; start += CHUNK) {
    checkpoint()
    const count = Math.min(CHUNK, whole - start)
    bits.fill(words.subarray(0, count))
    for (let at = 0; at < count; at += BLOCK) transform(words, at, { out, at: start + at })
  }
  if (whole === out.length) return
  // The words of the cut-off block are drawn, then the last sixteen numbers are drawn anew.
  bits.fill(words.subarray(0, out.length - whole))
  bits.fill(words.subarray(0, BLOCK))
  transform(words, 0, { out, at: out.length - BLOCK })
}
