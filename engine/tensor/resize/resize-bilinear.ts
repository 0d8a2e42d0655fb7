/**
 * Bilinear resizing: each target pixel is the weighted sum of the four source pixels around it, in one go. Doing one axis
 * after the other would save a little and round differently from PyTorch.
 */
import { TAP_BYTES } from '../../simd/kernels/resize-rows.ts'
import { Layout, openWorkspace } from '../../simd/workspace.ts'
import { createAxisTable } from './axis-table.ts'
import { createSourceRows, type Resize, type ResizedRows, writeTable } from './resize-float.ts'

const FLOAT_BYTES = 4
const CHANNELS_AT_ONCE = 4
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
