/** Many jobs of one submit. Each lives by itself; the batch remembers which they are, and why others are not there. */
import type { Refusal, RefusalDetails } from '../../errors.ts'
import type { JobStatus } from '../transitions.ts'

/** Jobs of one batch. */
export const MAX_BATCH = 1000

/** What would have been a job, and why it is none. */
export interface RefusedItem {
  /** Its place in the request. */
  readonly index: number
  readonly refusal: Refusal
  readonly message: string
  readonly details: RefusalDetails | null
}

/** Why the last of its jobs were refused although nothing is wrong with them. */
export type BatchLimit = 'queue_full' | 'insufficient_credits' | 'run_limit' | 'spend_limit'

export interface JobState {
  readonly status: JobStatus
  /** From 0 to 1; null: it has none yet. */
  readonly progress: number | null
}

export interface StoredBatch {
  readonly id: string
  readonly accountId: string
  readonly pool: string
  readonly createdAt: Date
  readonly expiresAt: Date
  /** It was to be accepted whole or not at all. */
  readonly isWhole: boolean
  /** Of the request that made it. */
  readonly digest: string
  /** By place; null where none was accepted. */
  readonly jobIds: readonly (string | null)[]
  /** Those that had something wrong with them. All others without a job were refused for `limitedBy`. */
  readonly refused: readonly RefusedItem[]
  readonly limitedBy: BatchLimit | null
  /** Of the jobs that are still there. */
  readonly states: ReadonlyMap<string, JobState>
}
