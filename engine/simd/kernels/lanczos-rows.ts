/**
 * Rows of bytes for Pillow's resize. A weight of 23 bits is kept in two parts, `high * 2048 + low`, each of which fits the
 * instruction that multiplies and adds pairs of sixteen-bit numbers; the sum of both parts is the exact product.
 */
import {
  type Code,
  defineKernel,
  f32,
  f32x4,
  forEach,
  i8x16,
  i16x8,
  i32,
  i32x4,
  type Local,
  v128,
} from '../assemble.ts'

export const LOW_BITS = 11
export const PRECISION_BITS = 22
/** Bytes of two taps in a table: both high parts, then both low parts, sixteen bits each. */
export const PAIR_BYTES = 8
const HALF = 1 << (PRECISION_BITS - 1)

const multiplyAdd = (total: Local, pairs: Code, weights: Code): Code =>
  total.set(i32x4.add(total.get, i32x4.dot(pairs, weights)))

/** high * 2048 + low, rounded to whole levels. */
function toLevels(high: Local, low: Local): Code {
  const sum = i32x4.add(i32x4.shiftLeft(high.get, i32.const(LOW_BITS)), low.get)
  return i32x4.shiftRight(i32x4.add(sum, i32x4.splat(i32.const(HALF))), i32.const(PRECISION_BITS))
}

/** Pixels of up to four floats as four bytes, `stride` bytes apart: 255·x rounded once, then cut off and clipped. */
export const floatsToBytes = defineKernel(
  { target: 'i32', source: 'i32', end: 'i32', sourceStride: 'i32', stride: 'i32' },
  ({ target, source, end, sourceStride, stride }, newLocal) => {
    const at = newLocal('i32')
    const words = newLocal('v128')
    const scaled = f32x4.multiply(v128.load(at.get), f32x4.splat(f32.const(255)))
    return forEach(at, { from: source.get, to: end.get, step: sourceStride.get }, [
      words.set(i32x4.truncate(scaled)),
      words.set(i16x8.narrow(words.get, words.get)),
      v128.store32(target.get, i8x16.narrow(words.get, words.get)),
      target.set(i32.add(target.get, stride.get)),
    ])
  },
)

// Two pixels of four bytes, as r r g g b b a a in sixteen bits each; 16 and above are bytes of the zero vector.
const PAIRED = [0, 16, 4, 16, 1, 16, 5, 16, 2, 16, 6, 16, 3, 16, 7, 16]

/**
 * A row of pixels of four bytes, resized. The table holds for each target pixel the offset of its first source pixel (i32)
 * and `pairBytes` of weights.
 */
export const lanczosRow = defineKernel(
  { target: 'i32', source: 'i32', table: 'i32', end: 'i32', pairBytes: 'i32', stride: 'i32' },
  ({ target, source, table, end, pairBytes, stride }, newLocal) => {
    const [at, pair, from] = ['i32', 'i32', 'i32'].map(() => newLocal('i32'))
    const [pixels, high, low] = ['v128', 'v128', 'v128'].map(() => newLocal('v128'))
    const weights = i32.add(at.get, i32.const(4))
    const pairs = { from: weights, to: i32.add(weights, pairBytes.get), step: i32.const(PAIR_BYTES) }
    return forEach(at, { from: table.get, to: end.get, step: i32.add(pairBytes.get, i32.const(4)) }, [
      from.set(i32.add(source.get, i32.load(at.get))),
      high.set(v128.zero),
      low.set(v128.zero),
      forEach(pair, pairs, [
        pixels.set(i8x16.shuffle(v128.load64Zero(from.get), v128.zero, PAIRED)),
        multiplyAdd(high, pixels.get, v128.load32Splat(pair.get)),
        multiplyAdd(low, pixels.get, v128.load32Splat(pair.get, 4)),
        from.set(i32.add(from.get, i32.const(8))),
      ]),
      high.set(toLevels(high, low)),
      high.set(i16x8.narrow(high.get, high.get)),
      v128.store32(target.get, i8x16.narrow(high.get, high.get)),
      target.set(i32.add(target.get, stride.get)),
    ])
  },
)

/** Bytes of a pair of rows in the table of `lanczosColumn`: two addresses, then the weights. */
export const ROW_PAIR_BYTES = 16
const QUARTERS = [0, 1, 2, 3]
const FIRST_HALF = [0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23]
const SECOND_HALF = FIRST_HALF.map((lane) => lane + 8)

/** Sixteen bytes of the target at a time, over all pairs of rows in the table. */
export const lanczosColumn = defineKernel(
  { target: 'i32', bytes: 'i32', table: 'i32', end: 'i32' },
  ({ target, bytes, table, end }, newLocal) => {
    const [at, pair] = ['i32', 'i32'].map(() => newLocal('i32'))
    const [first, second, mixed, left, right] = new Array(5).fill(0).map(() => newLocal('v128'))
    const high = QUARTERS.map(() => newLocal('v128'))
    const low = QUARTERS.map(() => newLocal('v128'))
    const row = (offset: number) => v128.load(i32.add(i32.load(pair.get, offset), at.get))
    const half = (lanes: readonly number[], quarter: number): Code => [
      mixed.set(i8x16.shuffle(first.get, second.get, lanes)),
      left.set(i16x8.extendLow(mixed.get)),
      right.set(i16x8.extendHigh(mixed.get)),
      [left, right].map(
        (values, k): Code => [
          multiplyAdd(high[quarter + k], values.get, v128.load32Splat(pair.get, 8)),
          multiplyAdd(low[quarter + k], values.get, v128.load32Splat(pair.get, 12)),
        ],
      ),
    ]
    const levels = (quarter: number) => toLevels(high[quarter], low[quarter])
    return forEach(at, { from: i32.const(0), to: bytes.get, step: i32.const(16) }, [
      [...high, ...low].map((total) => total.set(v128.zero)),
      forEach(pair, { from: table.get, to: end.get, step: i32.const(ROW_PAIR_BYTES) }, [
        first.set(row(0)),
        second.set(row(4)),
        half(FIRST_HALF, 0),
        half(SECOND_HALF, 2),
      ]),
      v128.store(
        i32.add(target.get, at.get),
        i8x16.narrow(i16x8.narrow(levels(0), levels(1)), i16x8.narrow(levels(2), levels(3))),
      ),
    ])
  },
)

/** n/255 for every byte, sixteen at a time. */
export const bytesToFloats = defineKernel(
  { target: 'i32', source: 'i32', end: 'i32' },
  ({ target, source, end }, newLocal) => {
    const at = newLocal('i32')
    const [bytes, words] = ['v128', 'v128'].map(() => newLocal('v128'))
    const quarter = (values: Code, index: number): Code =>
      v128.store(target.get, f32x4.divide(f32x4.convert(values), f32x4.splat(f32.const(255))), index * 16)
    return forEach(at, { from: source.get, to: end.get, step: i32.const(16) }, [
      bytes.set(v128.load(at.get)),
      words.set(i16x8.extendLow(bytes.get)),
      quarter(i32x4.extendLow(words.get), 0),
      quarter(i32x4.extendHigh(words.get), 1),
      words.set(i16x8.extendHigh(bytes.get)),
      quarter(i32x4.extendLow(words.get), 2),
      quarter(i32x4.extendHigh(words.get), 3),
      target.set(i32.add(target.get, i32.const(64))),
    ])
  },
)
