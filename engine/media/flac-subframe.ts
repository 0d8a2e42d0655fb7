/**
 * One channel of one block, as FLAC keeps it: predicted by a fixed polynomial of order 0 to 4, what is left over in Rice
 * codes whose parameter may change from part to part. Constant blocks, and blocks that do not shrink, have forms of their
 * own. Planning and writing are separate: the encoder compares plans before it writes.
 */
/** How many bits go out at a time: with up to seven that wait they fit into a 32-bit integer. */
const MAX_WRITE = 24

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

export type Plan =
  | { readonly kind: 'constant'; readonly bits: number }
  | { readonly kind: 'verbatim'; readonly bits: number }
  | FixedPlan

interface FixedPlan {
  readonly kind: 'fixed'
  readonly bits: number
  readonly order: number
  readonly residual: Int32Array
  readonly partitionOrder: number
  readonly parameters: readonly number[]
}

const HEADER_BITS = 8
const MAX_ORDER = 4
const MAX_PARTITION_ORDER = 6
// 15 means something else in a field of four bits.
const MAX_PARAMETER = 14
const RESIDUAL_HEADER_BITS = 6

/** The order whose differences are smallest. Each order is the difference of the one before it. */
function bestOrder(samples: Int32Array): number {
  if (samples.length <= MAX_ORDER) return 0
  let last0 = samples[3]
  let last1 = last0 - samples[2]
  let last2 = last1 - (samples[2] - samples[1])
  let last3 = last2 - (samples[2] - 2 * samples[1] + samples[0])
  let [sum0, sum1, sum2, sum3, sum4] = [0, 0, 0, 0, 0]
  // All orders are judged over the same samples.
  for (let i = MAX_ORDER; i < samples.length; i++) {
    const order0 = samples[i]
    const order1 = order0 - last0
    const order2 = order1 - last1
    const order3 = order2 - last2
    const order4 = order3 - last3
    sum0 += Math.abs(order0)
    sum1 += Math.abs(order1)
    sum2 += Math.abs(order2)
    sum3 += Math.abs(order3)
    sum4 += Math.abs(order4)
    last0 = order0
    last1 = order1
    last2 = order2
    last3 = order3
  }
  const sums = [sum0, sum1, sum2, sum3, sum4]
  return sums.indexOf(Math.min(...sums))
}

function differences(samples: Int32Array, order: number): Int32Array {
  const residual = samples.slice()
  for (let done = 1; done <= order; done++) {
    for (let i = residual.length - 1; i >= done; i--) residual[i] -= residual[i - 1]
  }
  return residual
}

/** Rice codes know no sign: 0, -1, 1, -2 … become 0, 1, 2, 3 … */
const folded = (value: number) => (value << 1) ^ (value >> 31)

function bestParameter(sum: number, count: number): { parameter: number; bits: number } {
  let best = { parameter: 0, bits: Number.POSITIVE_INFINITY }
  for (let parameter = 0; parameter <= MAX_PARAMETER; parameter++) {
    const bits = count * (parameter + 1) + Math.floor(sum / 2 ** parameter)
    if (bits < best.bits) best = { parameter, bits }
    else break
  }
  return best
}

/** Sums of codes over equal parts, as many as the block can be cut into. */
function finestSums(residual: Int32Array, order: number): number[] {
  let power = 0
  while (
    power < MAX_PARTITION_ORDER &&
    residual.length % 2 ** (power + 1) === 0 &&
    residual.length >> (power + 1) > order
  ) {
    power++
  }
  const size = residual.length >> power
  return Array.from({ length: 2 ** power }, (_, part) => {
    let sum = 0
    for (let i = Math.max(part * size, order); i < (part + 1) * size; i++) sum += folded(residual[i])
    return sum
  })
}

interface Partition {
  readonly partitionOrder: number
  readonly parameters: readonly number[]
  readonly bits: number
}

function partition(sums: readonly number[], length: number, order: number): Partition {
  const size = length / sums.length
  const best = sums.map((sum, part) => bestParameter(sum, part === 0 ? size - order : size))
  return {
    partitionOrder: Math.log2(sums.length),
    parameters: best.map(({ parameter }) => parameter),
    bits: best.reduce((total, { bits }) => total + 4 + bits, RESIDUAL_HEADER_BITS),
  }
}

function bestPartition(residual: Int32Array, order: number): Partition {
  let sums = finestSums(residual, order)
  let best = partition(sums, residual.length, order)
  while (sums.length > 1) {
    // Two neighbours together make one part of the next coarser cut.
    const finer = sums
    sums = Array.from({ length: finer.length / 2 }, (_, part) => finer[2 * part] + finer[2 * part + 1])
    const next = partition(sums, residual.length, order)
    if (next.bits < best.bits) best = next
  }
  return best
}

function isConstant(samples: Int32Array): boolean {
  for (let i = 1; i < samples.length; i++) if (samples[i] !== samples[0]) return false
  return true
}

export function planSubframe(samples: Int32Array, sampleBits: number): Plan {
  if (isConstant(samples)) return { kind: 'constant', bits: HEADER_BITS + sampleBits }
  const order = bestOrder(samples)
  const residual = differences(samples, order)
  const { parameters, bits, partitionOrder } = bestPartition(residual, order)
  const fixedBits = HEADER_BITS + order * sampleBits + bits
  const verbatimBits = HEADER_BITS + samples.length * sampleBits
  if (fixedBits >= verbatimBits) return { kind: 'verbatim', bits: verbatimBits }
  return { kind: 'fixed', bits: fixedBits, order, residual, partitionOrder, parameters }
}

function writeResidual(out: BitWriter, { residual, order, partitionOrder, parameters }: FixedPlan): void {
  out.write(0, 2)
  out.write(partitionOrder, 4)
  const size = residual.length >> partitionOrder
  parameters.forEach((parameter, index) => {
    out.write(parameter, 4)
    for (let i = Math.max(index * size, order); i < (index + 1) * size; i++) {
      const code = folded(residual[i])
      // A run of zeros, the one that ends it, the rest of the code; in one go where that fits.
      const zeros = code >>> parameter
      const tail = (1 << parameter) | (code & ((1 << parameter) - 1))
      if (zeros + parameter < MAX_WRITE) {
        out.write(tail, zeros + parameter + 1)
      } else {
        out.writeZeros(zeros)
        out.write(tail, parameter + 1)
      }
    }
  })
}

const CONSTANT_TYPE = 0b000000
const VERBATIM_TYPE = 0b000001
const FIXED_TYPE = 0b001000

export function writeSubframe(out: BitWriter, samples: Int32Array, plan: Plan, sampleBits: number): void {
  if (plan.kind === 'constant') {
    out.write(CONSTANT_TYPE << 1, HEADER_BITS)
    out.write(samples[0], sampleBits)
  } else if (plan.kind === 'verbatim') {
    out.write(VERBATIM_TYPE << 1, HEADER_BITS)
    for (const sample of samples) out.write(sample, sampleBits)
  } else {
    out.write((FIXED_TYPE | plan.order) << 1, HEADER_BITS)
    for (let i = 0; i < plan.order; i++) out.write(samples[i], sampleBits)
    writeResidual(out, plan)
  }
}
