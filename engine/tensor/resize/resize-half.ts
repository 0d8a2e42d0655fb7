/** Resizing to exactly half of both sides, the most frequent case of all: every target pixel is made of two by two pixels. */
import { Layout, openWorkspace } from '../../simd/workspace.ts'
import type { Resize, ResizedRows } from './resize-float.ts'

const FLOAT_BYTES = 4
const CHANNELS_AT_ONCE = 4

export const isHalf = ({ source, target }: Resize) =>
  source.width === 2 * target.width && source.height === 2 * target.height

export function openHalf(kernel: 'halveArea' | 'halveBilinear', { source, target }: Resize): ResizedRows {
  const { data, rowStride, width, channels } = source
  const layout = new Layout()
  const stride = channels * FLOAT_BYTES
  const rows = [layout.take(width * stride), layout.take(width * stride)]
  const outBytes = target.width * stride
  const out = layout.take(outBytes)
  const space = openWorkspace(layout)
  const lastGroup = Math.ceil(channels / CHANNELS_AT_ONCE) - 1
  return {
    space,
    rowAt(y, start) {
      for (const [index, row] of rows.entries()) {
        const from = start + (2 * y + index) * rowStride
        space.load(row, data.subarray(from, from + width * channels))
      }
      // From the last four channels to the first: what they write beyond their pixel belongs to the first of the next.
      for (let group = lastGroup; group >= 0; group--) {
        const offset = group * CHANNELS_AT_ONCE * FLOAT_BYTES
        space.run[kernel](out + offset, out + outBytes, rows[0] + offset, rows[1] + offset, stride)
      }
      return out
    },
  }
}
