/** Rows of floats value by value: two mixed in a blend mode, an image moved away from its blurred self, and a negative. */
import { type Code, defineKernel, f32, f32x4, forEach, i32, v128 } from '../assemble.ts'

const { add, subtract, multiply, lessOrEqual, squareRoot } = f32x4
const number = (value: number): Code => f32x4.splat(f32.const(value))
const ONE = number(1)
const inverse = (value: Code): Code => subtract(ONE, value)
const twice = (value: Code): Code => add(value, value)
/** To 0..1; not-a-number stays. */
const clip = (value: Code): Code => f32x4.greatest(f32x4.least(value, ONE), v128.zero)

/** target[i] = clip of the mix of a[i] and b[i]. */
function mixWith(mix: (a: Code, b: Code, factor: Code) => Code) {
  return defineKernel({ target: 'i32', bytes: 'i32', a: 'i32', b: 'i32', factor: 'f32' }, (given, newLocal) => {
    const at = newLocal('i32')
    const [a, b, factor] = ['v128', 'v128', 'v128'].map(() => newLocal('v128'))
    return [
      factor.set(f32x4.splat(given.factor.get)),
      forEach(at, { from: i32.const(0), to: given.bytes.get, step: i32.const(16) }, [
        a.set(v128.load(i32.add(given.a.get, at.get))),
        b.set(v128.load(i32.add(given.b.get, at.get))),
        v128.store(i32.add(given.target.get, at.get), clip(mix(a.get, b.get, factor.get))),
      ]),
    ]
  })
}

const blendWith = (blend: (a: Code, b: Code) => Code) =>
  mixWith((a, b, factor) => add(multiply(a, inverse(factor)), multiply(blend(a, b), factor)))

const isAtMost = (value: Code, limit: number): Code => lessOrEqual(value, number(limit))

function overlay(a: Code, b: Code): Code {
  const light = inverse(multiply(twice(inverse(a)), inverse(b)))
  return v128.select(multiply(twice(a), b), light, isAtMost(a, 0.5))
}

function softLight(a: Code, b: Code): Code {
  const dark = subtract(a, multiply(multiply(inverse(twice(b)), a), inverse(a)))
  const cubic = multiply(add(multiply(subtract(multiply(number(16), a), number(12)), a), number(4)), a)
  const lifted = v128.select(cubic, squareRoot(a), isAtMost(a, 0.25))
  const light = add(a, multiply(subtract(twice(b), ONE), subtract(lifted, a)))
  return v128.select(dark, light, isAtMost(b, 0.5))
}

export const blendNormal = blendWith((_a, b) => b)
export const blendMultiply = blendWith(multiply)
export const blendScreen = blendWith((a, b) => inverse(multiply(inverse(a), inverse(b))))
export const blendOverlay = blendWith(overlay)
export const blendSoftLight = blendWith(softLight)
export const blendDifference = blendWith(subtract)

/** a is the image, b its blurred self, the factor how far to move away. */
export const sharpen = mixWith((a, b, gain) => add(a, multiply(subtract(a, b), gain)))

/** 1 - x for all values from `start` to `end`, in place, four vectors at a time. */
export const invert = defineKernel({ start: 'i32', end: 'i32' }, ({ start, end }, newLocal) => {
  const at = newLocal('i32')
  const vectors = [0, 16, 32, 48].map((offset) => v128.store(at.get, inverse(v128.load(at.get, offset)), offset))
  return forEach(at, { from: start.get, to: end.get, step: i32.const(64) }, vectors)
})
