/**
 * Resizing rows of floats. Products are added in the order in which, and rounded where, PyTorch's own kernels do it on a
 * processor with fused multiply-add, so that results agree to the last bit and not only nearly: what goes through 8 bit
 * afterwards would otherwise land on the other side of a step now and then.
 */
import { type Code, defineKernel, f32x4, forEach, i32, type Local, v128 } from '../assemble.ts'

const VECTOR = i32.const(16)

/** Bytes of one tap in a table: where its pixel lies in the row (i32), and its weight (f32). */
export const TAP_BYTES = 8
/** Bytes of one target pixel with its two taps. */
export const PAIR_BYTES = 2 * TAP_BYTES
const FOUR_BYTES = 4 * TAP_BYTES

interface Term {
  readonly value: Code
  readonly weight: Code
}

/** The second product, then the others on top of it. */
function sumOf([first, second, ...others]: readonly Term[]): Code {
  return [first, ...others].reduce(
    (total, { value, weight }) => f32x4.multiplyAdd(value, weight, total),
    f32x4.multiply(second.value, second.weight),
  )
}

/** target[i] = a[i] * first + b[i] * second + …, over `bytes` rounded up to whole vectors. */
export const combineFour = defineKernel(
  {
    ...{ target: 'i32', bytes: 'i32', a: 'i32', b: 'i32', c: 'i32', d: 'i32' },
    ...{ first: 'f32', second: 'f32', third: 'f32', fourth: 'f32' },
  },
  ({ target, bytes, a, b, c, d, first, second, third, fourth }, newLocal) => {
    const at = newLocal('i32')
    const term = (row: Local, weight: Local): Term => ({
      value: v128.load(i32.add(row.get, at.get)),
      weight: f32x4.splat(weight.get),
    })
    return forEach(
      at,
      { from: i32.const(0), to: bytes.get, step: VECTOR },
      v128.store(
        i32.add(target.get, at.get),
        sumOf([term(a, first), term(b, second), term(c, third), term(d, fourth)]),
      ),
    )
  },
)

const GATHER_PARAMETERS = { target: 'i32', source: 'i32', table: 'i32', end: 'i32', stride: 'i32' } as const

/**
 * One pixel after the other, up to four channels at once, copied from where the table from `table` to `end` says. What a
 * store writes beyond its pixel is overwritten by the next one; behind the last there must be room for a vector.
 */
export const gatherOne = defineKernel(GATHER_PARAMETERS, ({ target, source, table, end, stride }, newLocal) => {
  const at = newLocal('i32')
  return forEach(at, { from: table.get, to: end.get, step: i32.const(TAP_BYTES) }, [
    v128.store(target.get, v128.load(i32.add(source.get, i32.load(at.get)))),
    target.set(i32.add(target.get, stride.get)),
  ])
})

/** The same, each pixel the weighted sum of four. */
export const gatherFour = defineKernel(GATHER_PARAMETERS, ({ target, source, table, end, stride }, newLocal) => {
  const at = newLocal('i32')
  const term = (tap: number): Term => ({
    value: v128.load(i32.add(source.get, i32.load(at.get, tap * TAP_BYTES))),
    weight: v128.load32Splat(at.get, tap * TAP_BYTES + 4),
  })
  return forEach(at, { from: table.get, to: end.get, step: i32.const(FOUR_BYTES) }, [
    v128.store(target.get, sumOf([term(0), term(1), term(2), term(3)])),
    target.set(i32.add(target.get, stride.get)),
  ])
})

/** The same, each pixel the weighted sum of two in `above` and the same two in `below`: weights along both axes multiply. */
export const gatherSquare = defineKernel(
  {
    ...{ target: 'i32', above: 'i32', below: 'i32', table: 'i32', end: 'i32', stride: 'i32' },
    ...{ upper: 'f32', lower: 'f32' },
  },
  ({ target, above, below, table, end, stride, upper, lower }, newLocal) => {
    const at = newLocal('i32')
    const term = (row: Local, rowWeight: Local, tap: number): Term => ({
      value: v128.load(i32.add(row.get, i32.load(at.get, tap * TAP_BYTES))),
      weight: f32x4.multiply(f32x4.splat(rowWeight.get), v128.load32Splat(at.get, tap * TAP_BYTES + 4)),
    })
    const terms = [term(above, upper, 0), term(above, upper, 1), term(below, lower, 0), term(below, lower, 1)]
    return forEach(at, { from: table.get, to: end.get, step: i32.const(PAIR_BYTES) }, [
      v128.store(target.get, sumOf(terms)),
      target.set(i32.add(target.get, stride.get)),
    ])
  },
)
