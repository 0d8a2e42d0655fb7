/**
 * Two rows to half of their width: each pixel made of two by two. The table that says which pixels belong together is not
 * needed then. Additions stand in the order of the general kernels, so that the bits are theirs.
 */
import { type Code, defineKernel, f32, f32x4, forEach, i32, type Local, v128 } from '../assemble.ts'

const number = (value: number): Code => f32x4.splat(f32.const(value))

/** `mix` gets the two pixels above and the two below. */
function halveWith(mix: (pixels: readonly Code[]) => Code) {
  return defineKernel(
    { target: 'i32', end: 'i32', above: 'i32', below: 'i32', stride: 'i32' },
    ({ target, end, above, below, stride }, newLocal) => {
      const [at, twice] = [newLocal('i32'), newLocal('i32')]
      const both = ({ get }: Local) => [v128.load(get), v128.load(i32.add(get, stride.get))]
      return [
        twice.set(i32.add(stride.get, stride.get)),
        forEach(at, { from: target.get, to: end.get, step: stride.get }, [
          v128.store(at.get, mix([...both(above), ...both(below)])),
          above.set(i32.add(above.get, twice.get)),
          below.set(i32.add(below.get, twice.get)),
        ]),
      ]
    },
  )
}

/** The mean: the sum begins with zero, which makes a difference to the sign of zero. Halving is dividing by two, exactly. */
export const halveArea = halveWith((pixels) => {
  const sum = pixels.reduce((total, pixel) => f32x4.add(total, pixel), v128.zero)
  return f32x4.multiply(f32x4.multiply(sum, number(0.5)), number(0.5))
})

/** All four weights are a quarter; the second product comes first. */
export const halveBilinear = halveWith(([first, second, ...others]) =>
  [first, ...others].reduce(
    (total, pixel) => f32x4.multiplyAdd(pixel, number(0.25), total),
    f32x4.multiply(second, number(0.25)),
  ),
)
