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
const TABLE_BITS = 12
const TABLE_SIZE = 2 ** TABLE_BITS
const REST_BITS = UNIFORM_BITS - TABLE_BITS
const REST_MASK = (1 << REST_BITS) - 1

const SINES = Float64Array.from({ length: TABLE_SIZE }, (_, i) => Math.sin((2 * Math.PI * i) / TABLE_SIZE))
const COSINES = Float64Array.from({ length: TABLE_SIZE }, (_, i) => Math.cos((2 * Math.PI * i) / TABLE_SIZE))
const LOGS = Float64Array.from({ length: TABLE_SIZE }, (_, i) => Math.log(1 + i / TABLE_SIZE))
const RECIPROCALS = Float64Array.from({ length: TABLE_SIZE }, (_, i) => 1 / (TABLE_SIZE + i))
const STEP_ANGLE = (2 * Math.PI) / UNIFORMS

/** ln(n / 2^24) for 1 <= n <= 2^24. */
function logOfFraction(n: number): number {
  const exponent = 31 - Math.clz32(n)
  const mantissa = n * 2 ** (UNIFORM_BITS - exponent)
  const entry = (mantissa >>> REST_BITS) & (TABLE_SIZE - 1)
  const rest = (mantissa & REST_MASK) * 2 ** -REST_BITS * RECIPROCALS[entry]
  return LOGS[entry] + rest * (1 - rest * (0.5 - rest / 3)) + (exponent - UNIFORM_BITS) * Math.LN2
}

/** Sixteen uniforms, as integers of 24 bits, become sixteen normal numbers. */
function transform(uniforms: Int32Array, out: Float32Array, at: number): void {
  for (let j = 0; j < HALF; j++) {
    const radius = Math.sqrt(-2 * logOfFraction(UNIFORMS - uniforms[j]))
    const turn = uniforms[j + HALF]
    const entry = turn >>> REST_BITS
    const angle = (turn & REST_MASK) * STEP_ANGLE
    const square = angle * angle
    const sine = angle * (1 - square / 6)
    const cosine = 1 - square * (0.5 - square / 24)
    out[at + j] = radius * (COSINES[entry] * cosine - SINES[entry] * sine)
    out[at + j + HALF] = radius * (SINES[entry] * cosine + COSINES[entry] * sine)
  }
}

/** Few numbers are made in pairs, from uniforms of 53 bits. */
function fillFew(out: Float32Array, bits: MersenneTwister): void {
  // The high word comes first, and only 53 bits of the two count.
  const uniform = () => (bits.next() % 2 ** 21) * 2 ** -21 + bits.next() * 2 ** -53
  for (let i = 0; i < out.length; i += 2) {
    const turn = 2 * Math.PI * uniform()
    const radius = Math.sqrt(-2 * Math.log1p(-uniform()))
    out[i] = radius * Math.cos(turn)
    if (i + 1 < out.length) out[i + 1] = radius * Math.sin(turn)
  }
}

/** `torch.randn` with a generator of this seed, in the order of memory. `checkpoint` is called now and then. */
export function fillTorchNormal(out: Float32Array, seed: number | bigint, checkpoint: () => void): void {
  const bits = new MersenneTwister(seed)
  if (out.length < BLOCK) {
    fillFew(out, bits)
    return
  }
  const uniforms = new Int32Array(BLOCK)
  const draw = () => {
    for (let j = 0; j < BLOCK; j++) uniforms[j] = bits.next() & (UNIFORMS - 1)
  }
  const whole = out.length - (out.length % BLOCK)
  for (let at = 0; at < whole; at += BLOCK) {
    if (at % 65_536 === 0) checkpoint()
    draw()
    transform(uniforms, out, at)
  }
  if (whole === out.length) return
  // The uniforms of the cut-off block are drawn, then the last sixteen places are drawn anew.
  for (let i = whole; i < out.length; i++) bits.next()
  draw()
  transform(uniforms, out, out.length - BLOCK)
}
