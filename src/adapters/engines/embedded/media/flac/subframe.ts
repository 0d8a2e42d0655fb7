/**
 * One channel of one block, as FLAC keeps it: predicted by a fixed polynomial of order 0 to 4, what is left over in Rice
 * codes whose parameter may change from part to part. Constant blocks, and blocks that do not shrink, have forms of their
 * own. Planning and writing are separate: the encoder compares plans before it writes.
 */
import type { BitWriter } from './bit-writer.ts'

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

/** Differences of differences: each order is the difference of the one before it. */
function differences(samples: Int32Array): Int32Array[] {
  const orders = [samples]
  for (let order = 1; order <= Math.min(MAX_ORDER, samples.length - 1); order++) {
    const below = orders[order - 1]
    const next = new Int32Array(samples.length)
    for (let i = order; i < samples.length; i++) next[i] = below[i] - below[i - 1]
    orders.push(next)
  }
  return orders
}

function bestOrder(orders: readonly Int32Array[]): number {
  let [best, least] = [0, Number.POSITIVE_INFINITY]
  orders.forEach((residual, order) => {
    let sum = 0
    // All orders are judged over the same samples.
    for (let i = MAX_ORDER; i < residual.length; i++) sum += Math.abs(residual[i])
    if (sum < least) [best, least] = [order, sum]
  })
  return best
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

function partition(residual: Int32Array, order: number, partitionOrder: number) {
  const size = residual.length >> partitionOrder
  const parameters: number[] = []
  let bits = RESIDUAL_HEADER_BITS
  for (let start = 0; start < residual.length; start += size) {
    const from = Math.max(start, order)
    let sum = 0
    for (let i = from; i < start + size; i++) sum += folded(residual[i])
    const best = bestParameter(sum, start + size - from)
    parameters.push(best.parameter)
    bits += 4 + best.bits
  }
  return { parameters, bits, partitionOrder }
}

function bestPartition(residual: Int32Array, order: number) {
  let best = partition(residual, order, 0)
  for (let power = 1; power <= MAX_PARTITION_ORDER; power++) {
    if (residual.length % 2 ** power !== 0 || residual.length >> power <= order) break
    const next = partition(residual, order, power)
    if (next.bits < best.bits) best = next
  }
  return best
}

export function planSubframe(samples: Int32Array, sampleBits: number): Plan {
  if (samples.every((sample) => sample === samples[0])) return { kind: 'constant', bits: HEADER_BITS + sampleBits }
  const orders = differences(samples)
  const order = bestOrder(orders)
  const residual = orders[order]
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
      out.writeZeros(code >>> parameter)
      // The one that ends the run of zeros, then the rest of the code.
      out.write((1 << parameter) | (code & ((1 << parameter) - 1)), parameter + 1)
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
