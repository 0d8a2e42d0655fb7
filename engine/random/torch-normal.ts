/**
 * PyTorch's normal numbers on the CPU: the same uniforms in the same order, made normal by the Box-Muller transform in
 * blocks of sixteen. Logarithm, sine and cosine come from tables with short series around their entries, exact to far
 * beyond single precision: the library functions would take most of the time.
 */
import { MersenneTwister } from './mersenne-twister.ts'

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
