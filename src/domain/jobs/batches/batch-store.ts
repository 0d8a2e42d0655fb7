/** The store as batches need it. */
import type { KeyClaim, KeyHolder } from '../../idempotency/idempotency-key.ts'
import type { NewJob } from '../job-store.ts'
import type { RunExcess } from '../limits/run-limits.ts'
import type { BatchLimit, RefusedItem, StoredBatch } from './batch.ts'

export interface NewBatch {
  readonly id: string
  readonly isWhole: boolean
  readonly digest: string
  /** How many items the request had. */
  readonly total: number
  /** In the order of their places: at least one. All of one account and pool, of one moment, and at one price. */
  readonly jobs: readonly { readonly index: number; readonly job: NewJob }[]
  readonly refused: readonly RefusedItem[]
}

export type BatchOutcome =
  /** The first `accepted` of its jobs are queued; what kept the others out is `limitedBy`. */
  | {
      readonly outcome: 'queued'
      readonly accepted: number
      readonly limitedBy: BatchLimit | null
      /** Those of them that an earlier result has answered, which are not queued; left out: none. */
      readonly answered?: readonly string[]
    }
  | { readonly outcome: 'key_reused'; readonly holder: KeyHolder }
  /** Nothing was written: there is room, or credit, for the first `room` jobs only. `excess`: which of their bounds is in the way. */
  | { readonly outcome: BatchLimit; readonly room: number; readonly excess?: RunExcess }
  | { readonly outcome: 'pool_closed' }

export interface BatchStore {
  /**
   * One transaction: idempotency key, the pool's deployment, credit holds, queue bound, jobs, counters, the batch. What it decides is
   * what as many single submits would meet one after the other. A batch that is to be whole is refused when one of its jobs does not
   * fit, any other when none does.
   */
  submit(batch: NewBatch, claim: KeyClaim | null): Promise<BatchOutcome>
  /** null for one that is unknown, not this account's, or past its retention. */
  find(accountId: string, batchId: string, now: Date): Promise<StoredBatch | null>
  /** Removes batches past their retention; returns how many. */
  sweep(now: Date): Promise<number>
}
