/**
 * Remembers which jobs were granted one more attempt after a failure that may have been the engine's (too little memory, a faulty
 * graphics card). Kept in memory only: after a restart a job may get another one, within its attempts.
 */
import { BoundedSet } from '../../../../lib/bounded-map.ts'

export interface EngineLossRetries {
  grant(jobId: string): void
  wasGranted(jobId: string): boolean
  forget(jobId: string): void
}

// Jobs that end in another process are never forgotten by `forget`.
const MAX_REMEMBERED = 10_000

export function createEngineLossRetries(): EngineLossRetries {
  const granted = new BoundedSet<string>(MAX_REMEMBERED)
  return {
    grant: (jobId) => granted.add(jobId),
    wasGranted: (jobId) => granted.has(jobId),
    forget: (jobId) => void granted.delete(jobId),
  }
}
