/**
 * Rows of a PNG: floats as bytes, the filters that make rows compressible, and the check sum of what is compressed. A filter
 * writes the row and, at `sums`, four words whose total says how far its bytes are from zero: the lowest compresses best.
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
  type NewLocal,
  v128,
} from '../assemble.ts'

const VECTOR = i32.const(16)

/** Sixteen floats at a time: 255·x rounded once, then cut off and clipped. */
export const packFloats = defineKernel(
  { target: 'i32', source: 'i32', end: 'i32' },
  ({ target, source, end }, newLocal) => {
    const at = newLocal('i32')
    const word = (index: number) =>
      i32x4.truncate(f32x4.multiply(v128.load(at.get, index * 16), f32x4.splat(f32.const(255))))
    return forEach(at, { from: source.get, to: end.get, step: i32.const(64) }, [
      v128.store(target.get, i8x16.narrow(i16x8.narrow(word(0), word(1)), i16x8.narrow(word(2), word(3)))),
      target.set(i32.add(target.get, VECTOR)),
    ])
  },
)

interface Neighbours {
  readonly left: Code
  readonly up: Code
  readonly upLeft: Code
}

/** `pixel` is how many bytes back the pixel to the left lies; in front of the rows there are zeros. */
function filterWith(predict: (neighbours: Neighbours, newLocal: NewLocal) => { before: Code; predicted: Code }) {
  return defineKernel(
    { target: 'i32', bytes: 'i32', row: 'i32', previous: 'i32', pixel: 'i32', sums: 'i32' },
    ({ target, bytes, row, previous, pixel, sums }, newLocal) => {
      const at = newLocal('i32')
      const [difference, total] = ['v128', 'v128'].map(() => newLocal('v128'))
      const here = (start: Code) => v128.load(i32.add(start, at.get))
      const neighbours = {
        left: here(i32.sub(row.get, pixel.get)),
        up: here(previous.get),
        upLeft: here(i32.sub(previous.get, pixel.get)),
      }
      const { before, predicted } = predict(neighbours, newLocal)
      const distance = i32x4.addNeighbours(i16x8.addNeighbours(i8x16.absolute(difference.get)))
      return [
        total.set(v128.zero),
        forEach(at, { from: i32.const(0), to: bytes.get, step: VECTOR }, [
          before,
          difference.set(i8x16.subtract(here(row.get), predicted)),
          v128.store(i32.add(target.get, at.get), difference.get),
          total.set(i32x4.add(total.get, distance)),
        ]),
        v128.store(sums.get, total.get),
      ]
    },
  )
}

export const filterNone = filterWith(() => ({ before: [], predicted: v128.zero }))
export const filterSub = filterWith(({ left }) => ({ before: [], predicted: left }))
export const filterUp = filterWith(({ up }) => ({ before: [], predicted: up }))

/** Whichever of the three is nearest to left + up - upLeft; in sixteen bits, half a vector at a time. */
export const filterPaeth = filterWith(({ left, up, upLeft }, newLocal) => {
  const [l, u, c] = ['v128', 'v128', 'v128'].map(() => newLocal('v128'))
  const [wideLeft, wideUp, wideCorner, toLeft, toUp, toCorner] = new Array(6).fill(0).map(() => newLocal('v128'))
  const [low, high] = ['v128', 'v128'].map(() => newLocal('v128'))
  const nearest = (widen: (value: Code) => Code): { before: Code; chosen: Code } => ({
    before: [
      wideLeft.set(widen(l.get)),
      wideUp.set(widen(u.get)),
      wideCorner.set(widen(c.get)),
      // How far the prediction is from each: from left it differs by up - corner, from up by left - corner.
      toLeft.set(i16x8.subtract(wideUp.get, wideCorner.get)),
      toUp.set(i16x8.subtract(wideLeft.get, wideCorner.get)),
      toCorner.set(i16x8.absolute(i16x8.add(toLeft.get, toUp.get))),
      toLeft.set(i16x8.absolute(toLeft.get)),
      toUp.set(i16x8.absolute(toUp.get)),
    ],
    chosen: v128.select(
      wideLeft.get,
      v128.select(wideUp.get, wideCorner.get, i16x8.lessOrEqual(toUp.get, toCorner.get)),
      v128.and(i16x8.lessOrEqual(toLeft.get, toUp.get), i16x8.lessOrEqual(toLeft.get, toCorner.get)),
    ),
  })
  const [first, second] = [nearest(i16x8.extendLow), nearest(i16x8.extendHigh)]
  return {
    before: [
      l.set(left),
      u.set(up),
      c.set(upLeft),
      first.before,
      low.set(first.chosen),
      second.before,
      high.set(second.chosen),
    ],
    predicted: i8x16.narrow(low.get, high.get),
  }
})

/** Adler's two sums go on over some bytes, 5552 at most so that they cannot overflow; they lie at `state`, low one first. */
export const addToChecksum = defineKernel(
  { source: 'i32', end: 'i32', state: 'i32' },
  ({ source, end, state }, newLocal) => {
    const [at, low, high] = ['i32', 'i32', 'i32'].map(() => newLocal('i32'))
    const modulo = (value: Code) => i32.remainder(value, i32.const(65_521))
    return [
      low.set(i32.load(state.get)),
      high.set(i32.load(state.get, 4)),
      forEach(at, { from: source.get, to: end.get, step: i32.const(1) }, [
        low.set(i32.add(low.get, i32.loadByte(at.get))),
        high.set(i32.add(high.get, low.get)),
      ]),
      i32.store(state.get, modulo(low.get)),
      i32.store(state.get, modulo(high.get), 4),
    ]
  },
)
