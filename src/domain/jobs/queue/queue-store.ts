/** The store as whoever changes the queue needs it: what claims nothing, and where jobs wait. */
import type { Job } from '../job.ts'
import type { TouchedJob } from '../job-store.ts'

/** `account`: paused by an operator; `own`: an account by its own wish, which is all that it can take back. */
export type PauseScope = 'service' | 'pool' | 'account' | 'own'

export interface PauseKey {
  readonly scope: PauseScope
  /** Of the pool or the account; '' for the service. */
  readonly name: string
}

export interface Pause extends PauseKey {
  readonly reason: string | null
  readonly pausedAt: Date
}

/** Left out: it stays as it is. */
export interface WaitingChange {
  /** Before or behind all jobs of its account that wait in its pool and may run: it gets the priority for that. */
  readonly place?: 'front' | 'back' | { readonly priority: number }
  /** null: it is held no longer. */
  readonly notBefore?: Date | null
}

export type ChangeOutcome =
  | { readonly outcome: 'changed'; readonly job: Job }
  | { readonly outcome: 'not_waiting'; readonly job: Job }
  /** It would be held until it has expired. */
  | { readonly outcome: 'held_too_long'; readonly until: Date }
  /** The priority that it would need is none. */
  | { readonly outcome: 'no_priority_left' }

export interface QueueStore {
  /** Claims of every process keep to it from their next one on. One that is there keeps its time and gets this reason. */
  pause(pause: Pause): Promise<void>
  /** null: it was not paused. */
  resume(key: PauseKey): Promise<Pause | null>
  /** The first thousand, by scope and name. */
  listPauses(): Promise<readonly Pause[]>
  /** What keeps jobs of this account in this pool from being claimed. */
  findPauses(accountId: string, pool: string): Promise<readonly Pause[]>
  /** null: there is no such job. */
  change(accountId: string, jobId: string, change: WaitingChange, now: Date): Promise<ChangeOutcome | null>
  /** Whether a held job is due. */
  hasDue(now: Date): Promise<boolean>
  /** Lets held jobs run whose time has come, at most `limit`. */
  releaseDue(now: Date, limit: number): Promise<TouchedJob[]>
}
