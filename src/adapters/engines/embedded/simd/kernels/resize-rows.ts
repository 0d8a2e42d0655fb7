/**
 * Rows of floats: weighted sums of whole rows, and rows whose pixels are weighted sums of pixels elsewhere in a row. Weights
 * add up to 1, so a sum is written as its first term plus weighted differences from it: what is of one colour stays exactly
 * that colour, which single precision would not give otherwise. The weight of the first term is therefore never read.
 */
import { defineKernel, type Kernel } from '../assemble.ts'
import { type Code, f32x4, forEach, i32, type Local, v128 } from '../instructions.ts'

const VECTOR = i32.const(16)

/** Bytes of one tap in a table: where its pixel lies in the row (i32), and its weight (f32). */
export const TAP_BYTES = 8

/** first + Σ (other - first) * weight */
function mixture(first: Code, others: readonly { readonly value: Code; readonly weight: Code }[]): Code {
  return others.reduce(
    (total, { value, weight }) => f32x4.add(total, f32x4.multiply(f32x4.subtract(value, first), weight)),
    first,
  )
}

/** target[i] = the mixture of a[i] and b[i], over `bytes` rounded up to whole vectors. */
export const combineTwo = defineKernel(
  { target: 'i32', bytes: 'i32', a: 'i32', b: 'i32', weight: 'f32' },
  ({ target, bytes, a, b, weight }, newLocal) => {
    const at = newLocal('i32')
    const first = newLocal('v128')
    const here = (row: Local) => v128.load(i32.add(row.get, at.get))
    return forEach(at, { from: i32.const(0), to: bytes.get, step: VECTOR }, [
      first.set(here(a)),
      v128.store(
        i32.add(target.get, at.get),
        mixture(first.get, [{ value: here(b), weight: f32x4.splat(weight.get) }]),
      ),
    ])
  },
)

export const combineFour = defineKernel(
  { target: 'i32', bytes: 'i32', a: 'i32', b: 'i32', second: 'f32', c: 'i32', third: 'f32', d: 'i32', fourth: 'f32' },
  ({ target, bytes, a, b, second, c, third, d, fourth }, newLocal) => {
    const at = newLocal('i32')
    const first = newLocal('v128')
    const here = (row: Local) => v128.load(i32.add(row.get, at.get))
    const other = (row: Local, weight: Local) => ({ value: here(row), weight: f32x4.splat(weight.get) })
    return forEach(at, { from: i32.const(0), to: bytes.get, step: VECTOR }, [
      first.set(here(a)),
      v128.store(
        i32.add(target.get, at.get),
        mixture(first.get, [other(b, second), other(c, third), other(d, fourth)]),
      ),
    ])
  },
)

const GATHER_PARAMETERS = { target: 'i32', source: 'i32', table: 'i32', end: 'i32', stride: 'i32' } as const
type GatherKernel = Kernel<typeof GATHER_PARAMETERS>

/**
 * One pixel after the other, up to four channels at once: for each, the table from `table` to `end` holds `taps` taps. What
 * a store writes beyond its pixel is overwritten by the next one; behind the last there must be room for a vector.
 */
function gatherWith(taps: number): GatherKernel {
  return defineKernel(GATHER_PARAMETERS, ({ target, source, table, end, stride }, newLocal) => {
    const at = newLocal('i32')
    const first = newLocal('v128')
    const pixel = (tap: number) => v128.load(i32.add(source.get, i32.load(at.get, tap * TAP_BYTES)))
    const others = Array.from({ length: taps - 1 }, (_, index) => ({
      value: pixel(index + 1),
      weight: v128.load32Splat(at.get, (index + 1) * TAP_BYTES + 4),
    }))
    return forEach(at, { from: table.get, to: end.get, step: i32.const(taps * TAP_BYTES) }, [
      first.set(pixel(0)),
      v128.store(target.get, mixture(first.get, others)),
      target.set(i32.add(target.get, stride.get)),
    ])
  })
}

export const gatherOne = gatherWith(1)
export const gatherTwo = gatherWith(2)
export const gatherFour = gatherWith(4)
