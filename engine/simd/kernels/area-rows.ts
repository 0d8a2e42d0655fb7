/** Means over boxes of pixels: sums that grow row by row in single precision, and their division at the end. */
import { defineKernel, f32x4, forEach, i32, v128 } from '../assemble.ts'

/** Bytes of one target pixel in the table: where its pixels begin in a row, where they end (i32), how many they are (f32). */
export const SPAN_BYTES = 12
/** Bytes of one sum: up to four channels, whatever the pixel has. */
export const SUM_BYTES = 16

/** For each target pixel of the table from `table` to `end`: adds its pixels of one source row, in their order. */
export const sumSpans = defineKernel(
  { sums: 'i32', source: 'i32', table: 'i32', end: 'i32', stride: 'i32' },
  ({ sums, source, table, end, stride }, newLocal) => {
    const [at, pixel] = [newLocal('i32'), newLocal('i32')]
    const total = newLocal('v128')
    const placeIn = (offset: number) => i32.add(source.get, i32.load(at.get, offset))
    return forEach(at, { from: table.get, to: end.get, step: i32.const(SPAN_BYTES) }, [
      total.set(v128.load(sums.get)),
      forEach(
        pixel,
        { from: placeIn(0), to: placeIn(4), step: stride.get },
        total.set(f32x4.add(total.get, v128.load(pixel.get))),
      ),
      v128.store(sums.get, total.get),
      sums.set(i32.add(sums.get, i32.const(SUM_BYTES))),
    ])
  },
)

/**
 * Each sum divided by `height`, then by the number of its columns. What a store writes beyond its pixel is overwritten by the
 * next one; behind the last there must be room for a vector.
 */
export const divideSums = defineKernel(
  { target: 'i32', sums: 'i32', table: 'i32', end: 'i32', stride: 'i32', height: 'f32' },
  ({ target, sums, table, end, stride, height }, newLocal) => {
    const at = newLocal('i32')
    const columnMean = f32x4.divide(v128.load(sums.get), f32x4.splat(height.get))
    return forEach(at, { from: table.get, to: end.get, step: i32.const(SPAN_BYTES) }, [
      v128.store(target.get, f32x4.divide(columnMean, v128.load32Splat(at.get, 8))),
      target.set(i32.add(target.get, stride.get)),
      sums.set(i32.add(sums.get, i32.const(SUM_BYTES))),
    ])
  },
)
