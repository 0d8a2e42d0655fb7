/**
 * Bilinear resizing: each target pixel is the weighted sum of the four source pixels around it, in one go. Doing one axis
 * after the other would save a little and round differently from PyTorch.
 */
import { TAP_BYTES } from '../../simd/kernels/resize-rows.ts'
import { Layout, openWorkspace, type Workspace } from '../../simd/workspace.ts'
import { createAxisTable } from './axis-table.ts'
import { type Plane, type ResizeTarget, writeTable } from './resize-float.ts'

const FLOAT_BYTES = 4
const CHANNELS_AT_ONCE = 4
const TAPS = 2

/** Where a source row lies. The two that were used last are still there. */
function createRowFinder({ floats }: Workspace, source: Plane, ring: readonly number[]): (row: number) => number {
  const heldRows = new Int32Array(ring.length).fill(-1)
  const length = source.width * source.channels
  return (row) => {
    const entry = row % ring.length
    if (heldRows[entry] === row) return ring[entry]
    const from = source.start + row * source.rowStride
    floats.set(source.data.subarray(from, from + length), ring[entry] / FLOAT_BYTES)
    heldRows[entry] = row
    return ring[entry]
  }
}

/** Resizes one image of a batch. `checkpoint` is called once per target row. */
export function resizePlaneBilinear(source: Plane, target: ResizeTarget, { checkpoint }: { checkpoint(): void }): void {
  const across = createAxisTable('bilinear', source.width, target.width)
  const down = createAxisTable('bilinear', source.height, target.height)
  const layout = new Layout()
  const rowBytes = source.width * source.channels * FLOAT_BYTES
  const sourceRows = [layout.take(rowBytes), layout.take(rowBytes)]
  const rowLength = target.width * source.channels
  const out = layout.take(rowLength * FLOAT_BYTES)
  const table = layout.take(across.indexes.length * TAP_BYTES)
  using space = openWorkspace(layout)
  writeTable(space, table, { table: across, channels: source.channels })
  const rowAt = createRowFinder(space, source, sourceRows)
  const end = table + across.indexes.length * TAP_BYTES
  const lastGroup = Math.ceil(source.channels / CHANNELS_AT_ONCE) - 1
  for (let y = 0; y < target.height; y++) {
    checkpoint()
    const [above, below] = [rowAt(down.indexes[y * TAPS]), rowAt(down.indexes[y * TAPS + 1])]
    // From the last four channels to the first: what they write beyond their pixel belongs to the first of the next.
    for (let group = lastGroup; group >= 0; group--) {
      const offset = group * CHANNELS_AT_ONCE * FLOAT_BYTES
      const addresses = [out + offset, above + offset, below + offset, table, end, source.channels * FLOAT_BYTES]
      space.run.gatherSquare(...addresses, down.weights[y * TAPS], down.weights[y * TAPS + 1])
    }
    const from = out / FLOAT_BYTES
    target.data.set(space.floats.subarray(from, from + rowLength), target.start + y * rowLength)
  }
}
