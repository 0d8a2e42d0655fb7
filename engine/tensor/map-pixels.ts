/** Element-wise work on tensors, in blocks between which a cancelled run is noticed. */

import { runRows } from './rows/run-rows.ts'
import { toValueJob, type ValueChange } from './rows/value-rows.ts'
import type { PixelWork, Tensor } from './tensor.ts'

// A few hundred microseconds of work: short against any deadline, long against the price of looking at the flag.
export const BLOCK_ELEMENTS = 262_144

/** Calls `work` with [from, to) ranges that together cover `count` elements. */
export function inBlocks(count: number, checkpoint: () => void, work: (from: number, to: number) => void): void {
  for (let from = 0; from < count; from += BLOCK_ELEMENTS) {
    checkpoint()
    work(from, Math.min(from + BLOCK_ELEMENTS, count))
  }
}

export function clampToUnit(value: number): number {
  return value < 0 ? 0 : value > 1 ? 1 : value
}

/** A new tensor of the same shape; `fill` writes the elements from..to-1 of it. */
export function mapBlocks(
  source: Tensor,
  { allocate, checkpoint }: PixelWork,
  fill: (from: Float32Array, to: Float32Array, range: { readonly start: number; readonly end: number }) => void,
): Tensor {
  const result = allocate(source.shape)
  inBlocks(source.data.length, checkpoint, (start, end) => fill(source.data, result.data, { start, end }))
  return result
}

/** The same for changes that have a name: several threads can share those. */
export function changeValues(source: Tensor, change: ValueChange, work: PixelWork): Tensor {
  const result = work.allocate(source.shape)
  runRows(toValueJob(change, source.data, result.data), work)
  return result
}
