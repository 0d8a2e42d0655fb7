/**
 * Garbage collections at moments of the caller's choosing, for callers that know more than the runtime does: that a thread is
 * at rest, that the buffers of a transfer have just been dropped, or that shared memory has, which does not weigh on the
 * runtime's own decisions.
 */

import { getHeapStatistics, setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { ResourceLimits } from 'node:worker_threads'

/** `shrink`: all that can be given back, the room for young values among it, which an ordinary collection keeps for the next burst. */
type CollectionType = 'minor' | 'major' | 'shrink'
type Collect = (options: { readonly type: 'minor' | 'major'; readonly flavor?: 'last-resort' }) => void

let collect: Collect | null = null

/** Collects this thread's heap, and returns when that is done. */
export function collectGarbage(type: CollectionType): void {
  collect ??= openCollect()
  collect(type === 'shrink' ? { type: 'major', flavor: 'last-resort' } : { type })
}

function openCollect(): Collect {
  setFlagsFromString('--expose-gc')
  return runInNewContext('gc') as Collect
}

// Gives memory back while this thread is idle. The runtime collects only when the heap has grown by a share of its size, never
// because time passes, so after a busy hour an idle service would keep the garbage of that hour for good.

export interface HeapRuntime {
  heapBytes(): number
  /** The share of the time since the last call in which this thread was busy, 0 to 1. */
  busyShare(): number
  collect(type: 'major' | 'shrink'): void
}

// How often to check: an idle thread gives memory back within about this time.
export const IDLE_CHECK_MS = 15_000
// A collection takes about a millisecond per 1.5 MB of live data, so it must not delay an answer.
const IDLE_SHARE = 0.05
// Less than this is not worth a pause.
const WORTHWHILE_BYTES = 4 * 1024 * 1024
// To shrink takes several times as long as a collection: for what a busy time has left, not for a single job's garbage.
const MUCH_BYTES = 32 * 1024 * 1024

/**
 * Returns a function to be called every `IDLE_CHECK_MS`, which returns whether it collected. `hasLetGo`: much was let go of that a
 * heap which has not grown does not show.
 */
export function createIdleCollection(runtime: HeapRuntime = threadRuntime()): (hasLetGo?: boolean) => boolean {
  let settledBytes = 0
  let shrunkBytes = 0
  return (hasLetGo = false) => {
    const bytes = runtime.heapBytes()
    const isBusy = runtime.busyShare() > IDLE_SHARE
    if (isBusy || !(hasLetGo || bytes >= settledBytes + WORTHWHILE_BYTES)) return false
    const isMuch = hasLetGo || bytes >= shrunkBytes + MUCH_BYTES
    runtime.collect(isMuch ? 'shrink' : 'major')
    settledBytes = runtime.heapBytes()
    if (isMuch) shrunkBytes = settledBytes
    return true
  }
}

/** The heap of the current thread. */
function threadRuntime(): HeapRuntime {
  let lastCpu = process.threadCpuUsage()
  let lastMs = performance.now()
  return {
    // The size of the heap, not the used part of it: the aim is to give pages back.
    heapBytes: () => getHeapStatistics().total_physical_size,
    // By the time that the processor gave it: on a busy machine an idle thread, too, is late at everything that it does.
    busyShare() {
      const [cpu, nowMs] = [process.threadCpuUsage(), performance.now()]
      const usedMs = (cpu.user + cpu.system - lastCpu.user - lastCpu.system) / 1000
      const share = usedMs / Math.max(1, nowMs - lastMs)
      ;[lastCpu, lastMs] = [cpu, nowMs]
      return share
    },
    collect: collectGarbage,
  }
}

// Limits of a thread's heap, chosen so that a thread that runs out of memory ends alone. The runtime lets such a thread exceed its
// limit by 16 MB while it ends, and aborts the whole process when that is not enough. So the young generation, which one
// collection may promote at once, must be smaller than that.

const YOUNG_MB = 16

export function toHeapLimits(megabytes: number): ResourceLimits {
  return { maxOldGenerationSizeMb: Math.ceil(megabytes), maxYoungGenerationSizeMb: YOUNG_MB }
}
