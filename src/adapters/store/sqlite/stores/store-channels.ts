/** The two ends that the stores talk to, and the way long sweeps are cut so that nobody waits behind them. */
import type { ReadOperations } from '../operations/read-operations.ts'
import type { WriteOperations } from '../operations/write-operations.ts'
import type { Channel } from '../threads/channel.ts'

export interface StoreChannels {
  readonly write: Channel<WriteOperations>
  readonly read: Channel<ReadOperations>
}

// About ten statements per removed job: a slice keeps the writer for a few milliseconds.
export const SLICE = 100

/** Repeats `sweep` with small limits until it finds less than it was allowed, or `limit` is reached. */
export async function inSlices(limit: number, sweep: (sliceLimit: number) => Promise<number>): Promise<void> {
  let left = limit
  while (left > 0) {
    const sliceLimit = Math.min(SLICE, left)
    const found = await sweep(sliceLimit)
    if (found < sliceLimit) return
    left -= found
  }
}
