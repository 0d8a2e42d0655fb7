/**
 * A helper thread that counts the rows which it begins, and ends as told in the middle of one. Every loop over rows asks for a part
 * of its data first, which is how this module comes between.
 */
import { workerData } from 'node:worker_threads'

export type Fate = 'lives' | 'exits' | 'throws' | 'hangs'

export interface WatchedHelperData {
  /** How many parts of data it and its predecessors have asked for. */
  readonly begun: Int32Array<SharedArrayBuffer>
  readonly fate: Fate
}

// Not at the first row, so that a part of the band has been written.
const FATAL_PART = 9
const ENDS: Readonly<Record<Fate, () => void>> = {
  lives() {},
  exits: () => process.exit(3),
  throws() {
    throw new Error('this helper fails')
  },
  hangs: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
}

const { begun, fate } = workerData as WatchedHelperData
const { subarray } = Float32Array.prototype
let parts = 0
Float32Array.prototype.subarray = function partOf(this: Float32Array<ArrayBuffer>, start?: number, end?: number) {
  parts += 1
  Atomics.add(begun, 0, 1)
  Atomics.notify(begun, 0)
  if (parts === FATAL_PART) ENDS[fate]()
  return subarray.call(this, start, end)
} as typeof subarray

await import('../../bands/band-thread.ts')
