/**
 * Limits of a thread's heap, chosen so that a thread that runs out of memory ends alone. The runtime lets such a thread exceed its
 * limit by 16 MB while it ends, and aborts the whole process when that is not enough. So the young generation, which one
 * collection may promote at once, must be smaller than that.
 */
import type { ResourceLimits } from 'node:worker_threads'

const YOUNG_MB = 16

export function toHeapLimits(megabytes: number): ResourceLimits {
  return { maxOldGenerationSizeMb: Math.ceil(megabytes), maxYoungGenerationSizeMb: YOUNG_MB }
}
