/** One thing that is done to many jobs: to which, how far it is, and what became of each. */
import type { JobStatus } from '../transitions.ts'

export type BulkKind = 'cancel' | 'rerun' | 'prioritize' | 'download'

/** `stopped`: by whoever asked for it, or for good by the service, as its reason says. */
export type BulkState = 'working' | 'done' | 'stopped'

/** `waiting`: its turn has not come; `skipped`: by then there was nothing to do to it, because it had ended or was gone. */
export type ItemOutcome = 'waiting' | 'done' | 'skipped' | 'refused'

/** The jobs that something is done to, as they were asked for: by their ids, or by the words of a filter. */
export type AskedJobs = { readonly jobIds: number } | { readonly filter: Readonly<Record<string, string>> }

export interface BulkReason {
  readonly code: string
  readonly message: string
}

export interface BulkAction {
  readonly id: string
  /** null: the operator's, over the jobs of all accounts. */
  readonly accountId: string | null
  /** In the name of which key; null: of none. */
  readonly keyId: string | null
  /** Who asked for the operator's, for its audit lines. */
  readonly actor: string | null
  readonly kind: BulkKind
  readonly asked: AskedJobs
  /** Of a cancel: jobs that run by then go on. */
  readonly isOnlyWaiting: boolean
  /** That they get; null: it is another kind. */
  readonly priority: number | null
  /** More jobs fitted than one action takes. */
  readonly hasMore: boolean
  readonly total: number
  readonly done: number
  readonly skipped: number
  readonly refused: number
  /** How many archives a download has. */
  readonly parts: number
  readonly state: BulkState
  /** Why it was stopped, or, while it works, what it has to wait for. */
  readonly reason: BulkReason | null
  readonly createdAt: Date
  readonly endedAt: Date | null
  /** It is forgotten then. */
  readonly expiresAt: Date
}

export interface BulkItem {
  /** From 1 on, the oldest job first. */
  readonly place: number
  /** The archive that it is in, from 1 on. */
  readonly part: number
  readonly accountId: string
  readonly jobId: string
  readonly outcome: ItemOutcome
  /** The new job of one that was run again. */
  readonly madeId: string | null
  /** Of a refusal. */
  readonly code: string | null
  readonly message: string | null
}

/** At most so many jobs by one of them: whoever has more makes another one. */
export const MAX_BULK_JOBS = 10_000
/** So many of an account may be at work at a time. */
export const MAX_WORKING = 10

const ENDED: readonly JobStatus[] = ['succeeded', 'failed', 'canceled', 'expired']

/** The states in which a job can have this done to it. */
export const STATUSES_FOR: Readonly<Record<BulkKind, readonly JobStatus[]>> = {
  cancel: ['queued', 'running'],
  prioritize: ['queued'],
  rerun: ENDED,
  download: ENDED,
}
