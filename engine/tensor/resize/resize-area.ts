/**
 * Area resizing: the mean over every source pixel that a target pixel touches. The sum runs row by row in single precision
 * and is divided by height and width one after the other, as PyTorch does it: an image that goes through 8 bit afterwards
 * would otherwise land on the other side of a step now and then.
 */
import { SPAN_BYTES, SUM_BYTES } from '../../simd/kernels/area-rows.ts'
import { TAP_BYTES } from '../../simd/kernels/resize-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'
import {
  CHANNELS_AT_ONCE,
  createAxisTable,
  createSourceRows,
  FLOAT_BYTES,
  type Resize,
  type ResizedRows,
  writeTable,
} from './resize-float.ts'

/** The source pixels from `start` to before `end` that target pixel `index` touches along one axis. */
function spanOf(index: number, inSize: number, outSize: number): { readonly start: number; readonly end: number } {
  return { start: Math.floor((index * inSize) / outSize), end: Math.ceil(((index + 1) * inSize) / outSize) }
}

function writeSpans({ ints, floats }: Workspace, at: number, { source, target }: Resize): void {
  const pixelBytes = source.channels * FLOAT_BYTES
  for (let x = 0, word = at / FLOAT_BYTES; x < target.width; x++, word += SPAN_BYTES / FLOAT_BYTES) {
    const { start, end } = spanOf(x, source.width, target.width)
    ints[word] = start * pixelBytes
    ints[word + 1] = end * pixelBytes
    floats[word + 2] = end - start
  }
}

export function openArea({ source, target }: Resize): ResizedRows {
  const { data, rowStride, width, height, channels } = source
  const layout = new Layout()
  const groups = Math.ceil(channels / CHANNELS_AT_ONCE)
  const given = layout.take(width * channels * FLOAT_BYTES)
  const sumBytes = target.width * SUM_BYTES
  const sums = Array.from({ length: groups }, () => layout.take(sumBytes))
  const out = layout.take(target.width * channels * FLOAT_BYTES)
  const table = layout.take(target.width * SPAN_BYTES)
  const end = table + target.width * SPAN_BYTES
  const space = openWorkspace(layout)
  writeSpans(space, table, { source, target })
  const stride = channels * FLOAT_BYTES
  const offsetOf = (group: number) => group * CHANNELS_AT_ONCE * FLOAT_BYTES
  return {
    space,
    rowAt(y, start) {
      const rows = spanOf(y, height, target.height)
      for (const group of sums) space.bytes.fill(0, group, group + sumBytes)
      for (let row = rows.start; row < rows.end; row++) {
        const from = start + row * rowStride
        space.load(given, data.subarray(from, from + width * channels))
        for (let group = 0; group < groups; group++) {
          space.run.sumSpans(sums[group], given + offsetOf(group), table, end, stride)
        }
      }
      // From the last four channels to the first: what they write beyond their pixel belongs to the first of the next.
      for (let group = groups - 1; group >= 0; group--) {
        space.run.divideSums(out + offsetOf(group), sums[group], table, end, stride, rows.end - rows.start)
      }
      return out
    },
  }
}

// Bilinear resizing: each target pixel is the weighted sum of the four source pixels around it, in one go. Doing one axis
// after the other would save a little and round differently from PyTorch.

const TAPS = 2

export function openBilinear({ source, target }: Resize): ResizedRows {
  const across = createAxisTable('bilinear', source.width, target.width)
  const down = createAxisTable('bilinear', source.height, target.height)
  const layout = new Layout()
  const rowBytes = source.width * source.channels * FLOAT_BYTES
  // The two rows that were used last are still there.
  const ring = [layout.take(rowBytes), layout.take(rowBytes)]
  const out = layout.take(target.width * source.channels * FLOAT_BYTES)
  const table = layout.take(across.indexes.length * TAP_BYTES)
  const space = openWorkspace(layout)
  writeTable(space, table, { table: across, channels: source.channels })
  const sourceRow = createSourceRows(source, { ring, fill: space.load })
  const end = table + across.indexes.length * TAP_BYTES
  const lastGroup = Math.ceil(source.channels / CHANNELS_AT_ONCE) - 1
  return {
    space,
    rowAt(y, start) {
      const above = sourceRow(down.indexes[y * TAPS], start)
      const below = sourceRow(down.indexes[y * TAPS + 1], start)
      // From the last four channels to the first: what they write beyond their pixel belongs to the first of the next.
      for (let group = lastGroup; group >= 0; group--) {
        const offset = group * CHANNELS_AT_ONCE * FLOAT_BYTES
        const addresses = [out + offset, above + offset, below + offset, table, end, source.channels * FLOAT_BYTES]
        space.run.gatherSquare(...addresses, down.weights[y * TAPS], down.weights[y * TAPS + 1])
      }
      return out
    },
  }
}

// Resizing to exactly half of both sides, the most frequent case of all: every target pixel is made of two by two pixels.

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
