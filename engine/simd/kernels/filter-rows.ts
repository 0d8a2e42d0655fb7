/**
 * Symmetric filters on rows of floats, four vectors at a time: each weight is loaded once for sixteen values. Their weights
 * add up to 1, so a sum is written as the middle plus weighted differences from it: what is of one colour stays exactly so.
 */
import { type Code, defineKernel, f32x4, forEach, i32, type NewLocal, v128 } from '../assemble.ts'

const VECTORS = 4
/** Rows are worked on in steps of this many bytes: they need room up to the next multiple. */
export const STEP_BYTES = VECTORS * 16
const STEP = i32.const(STEP_BYTES)
/** Bytes of one pair in a table: the two rows (i32 each) and their weight (f32). */
export const PAIR_BYTES = 12

const each = (make: (vector: number) => Code): Code => Array.from({ length: VECTORS }, (_, vector) => make(vector))

function newTotals(newLocal: NewLocal) {
  const totals = Array.from({ length: VECTORS }, () => newLocal('v128'))
  const twiceMiddle = Array.from({ length: VECTORS }, () => newLocal('v128'))
  return {
    totals,
    startTotal: (v: number, middle: Code): Code => [
      totals[v].set(middle),
      twiceMiddle[v].set(f32x4.add(totals[v].get, totals[v].get)),
    ],
    addPair(v: number, both: Code, factor: Code): Code {
      const difference = f32x4.subtract(both, twiceMiddle[v].get)
      return totals[v].set(f32x4.add(totals[v].get, f32x4.multiply(difference, factor)))
    },
  }
}

/** target[i] = middle[i] + Σ (above[i] + below[i] - 2 middle[i]) * weight, over the pairs from `table` to `end`. */
export const sumPairs = defineKernel(
  { target: 'i32', bytes: 'i32', middle: 'i32', table: 'i32', end: 'i32' },
  ({ target, bytes, middle, table, end }, newLocal) => {
    const [at, pair, above, below] = ['i32', 'i32', 'i32', 'i32'].map(() => newLocal('i32'))
    const factor = newLocal('v128')
    const { totals, startTotal, addPair } = newTotals(newLocal)
    const both = (v: number) => f32x4.add(v128.load(above.get, v * 16), v128.load(below.get, v * 16))
    return forEach(at, { from: i32.const(0), to: bytes.get, step: STEP }, [
      each((v) => startTotal(v, v128.load(i32.add(middle.get, at.get), v * 16))),
      forEach(pair, { from: table.get, to: end.get, step: i32.const(PAIR_BYTES) }, [
        above.set(i32.add(i32.load(pair.get), at.get)),
        below.set(i32.add(i32.load(pair.get, 4), at.get)),
        factor.set(v128.load32Splat(pair.get, 8)),
        each((v) => addPair(v, both(v), factor.get)),
      ]),
      each((v) => v128.store(i32.add(target.get, at.get), totals[v].get, v * 16)),
    ])
  },
)

/** The same along one row: `source` is its first pixel, neighbours lie `stride` bytes apart, `weights` begin with the nearest's. */
export const filterRow = defineKernel(
  { target: 'i32', bytes: 'i32', source: 'i32', stride: 'i32', weights: 'i32', end: 'i32' },
  ({ target, bytes, source, stride, weights, end }, newLocal) => {
    const [at, weight, left, right] = ['i32', 'i32', 'i32', 'i32'].map(() => newLocal('i32'))
    const factor = newLocal('v128')
    const { totals, startTotal, addPair } = newTotals(newLocal)
    const both = (v: number) => f32x4.add(v128.load(left.get, v * 16), v128.load(right.get, v * 16))
    return forEach(at, { from: i32.const(0), to: bytes.get, step: STEP }, [
      left.set(i32.add(source.get, at.get)),
      right.set(left.get),
      each((v) => startTotal(v, v128.load(left.get, v * 16))),
      forEach(weight, { from: weights.get, to: end.get, step: i32.const(4) }, [
        left.set(i32.sub(left.get, stride.get)),
        right.set(i32.add(right.get, stride.get)),
        factor.set(v128.load32Splat(weight.get)),
        each((v) => addPair(v, both(v), factor.get)),
      ]),
      each((v) => v128.store(i32.add(target.get, at.get), totals[v].get, v * 16)),
    ])
  },
)
