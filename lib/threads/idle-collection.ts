/**
 * Gives memory back while nobody needs this thread. The runtime collects when the heap has grown by a share of its size,
 * never because time passes: after a busy hour a service at rest would keep what that hour left behind for good.
 */
import { performance } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'
import { collectGarbage } from './garbage.ts'

export interface HeapRuntime {
  heapBytes(): number
  /** The share of the time since the last question in which this thread was at work, 0 to 1. */
  busyShare(): number
  collect(): void
}

// How often to ask: a thread that rests gives back what it holds within about this time.
export const IDLE_CHECK_MS = 15_000
// A collection takes about a millisecond for each 1.5 MB that stay: nobody must be waiting for an answer meanwhile.
const IDLE_SHARE = 0.05
// Less than this is not worth a pause.
const WORTHWHILE_BYTES = 4 * 1024 * 1024

/** What it returns is to be called every `IDLE_CHECK_MS`; it answers whether it collected. */
export function createIdleCollection(runtime: HeapRuntime = threadRuntime()): () => boolean {
  let settledBytes = 0
  return () => {
    if (runtime.busyShare() > IDLE_SHARE || runtime.heapBytes() < settledBytes + WORTHWHILE_BYTES) return false
    runtime.collect()
    settledBytes = runtime.heapBytes()
    return true
  }
}

/** The heap of the thread that asks. */
function threadRuntime(): HeapRuntime {
  let last = performance.eventLoopUtilization()
  return {
    // What the heap occupies, not what is used of it: pages that a collection gives back are what this is about.
    heapBytes: () => getHeapStatistics().total_physical_size,
    busyShare() {
      const now = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(now, last)
      last = now
      return utilization
    },
    collect: () => collectGarbage('major'),
  }
}
