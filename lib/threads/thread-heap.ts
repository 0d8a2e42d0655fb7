/**
 * Limits of a thread's heap, such that a thread which runs out of it ends alone. The runtime lets such a thread go 16 MB over
 * its limit while it ends, and aborts the whole process when that is not enough; so what one collection can move over from
 * the young objects at once must be less.
 */
import type { ResourceLimits } from 'node:worker_threads'

const YOUNG_MB = 16

export function toHeapLimits(megabytes: number): ResourceLimits {
  return { maxOldGenerationSizeMb: Math.ceil(megabytes), maxYoungGenerationSizeMb: YOUNG_MB }
}
