/**
 * Area resizing: the mean over every source pixel that a target pixel touches. The sum runs row by row in single precision
 * and is divided by height and width one after the other, as PyTorch does it: an image that goes through 8 bit afterwards
 * would otherwise land on the other side of a step now and then.
 */
import { SPAN_BYTES, SUM_BYTES } from '../../simd/kernels/area-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'
import type { Resize, ResizedRows } from './resize-float.ts'

const FLOAT_BYTES = 4
const CHANNELS_AT_ONCE = 4

/** The source pixels from `start` to before `end` that target pixel `index` touches along one axis. */
function spanOf(index: number, inSize: number, outSize: number): { readonly start: number; readonly end: number } {
  return { start: Math.floor((index * inSize) / outSize), end: Math.ceil(((index + 1) * inSize) / outSize) }
}

function writeTable({ ints, floats }: Workspace, at: number, { source, target }: Resize): void {
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
  writeTable(space, table, { source, target })
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
