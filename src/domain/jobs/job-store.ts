/**
 * The store as jobs need it. A submit or a claim is one transaction with the limits that it checks, every write of a worker carries
 * its lease (the fencing token), and a page is found by key and not by offset.
 * A write of a worker counts only while its lease stands and, for an end, while the job is in one of the states that `from` lists;
 * cancel, release, reap and expire choose the next state from the present one. All of these moves stand in transitions.ts.
 */

import type { TraceContext } from '../../../lib/tracing/trace-context.ts'
import type { BudgetExcess } from '../credits/budgets/budget.ts'
import type { PoolPrice } from '../credits/prices.ts'
import type { EngineOffer } from '../engine/fleet/lane-offers.ts'
import type { KeyClaim, KeyHolder } from '../idempotency/idempotency-key.ts'
import type { NewHook } from '../webhooks/webhook.ts'
import type { Job, JobError, JobInput, JobLog, Output, Progress, Submission } from './job.ts'
import type { RunBound, RunExcess } from './limits/run-limits.ts'
import type { GpuUse } from './run/gpu-use.ts'
import type { RunRecord } from './run/record/run-record.ts'
import type { JobOrigin, JobRecipe } from './submit/job-origin.ts'
import type { JobStatus, RunEndStatus } from './transitions.ts'

export interface NewJob {
  readonly id: string
  readonly accountId: string
  readonly pool: string
  readonly priority: number
  readonly metadata: Readonly<Record<string, string>>
  readonly createdAt: Date
  readonly expiresAt: Date
  /** The executed graph, as text: integers beyond 2^53 must survive. */
  readonly workflow: string
  readonly inputs: readonly JobInput[]
  /** The submit carried credentials: the job must never run without them. */
  readonly needsExtraData: boolean
  /** Those credentials sealed under the operator's key, or null when they live in memory only. Kept until the job ends. */
  readonly sealedExtraData: Uint8Array | null
  /** The rest of `extra_data` that the run needs, as JSON text without any credential. Kept until the job ends. */
  readonly notes?: string | null
  /** Held and stored with the job, which is charged by it at its end; absent: the job costs nothing. */
  readonly price?: PoolPrice | null
  /** The API key that it came with; what it costs is noted under it. */
  readonly keyId?: string | null
  /** The id was chosen by the caller, so it may be taken. */
  readonly hasChosenId?: boolean
  readonly submission?: Submission | null
  /** What is kept of its submit, to be shown later; left out or null: nothing. */
  readonly origin?: JobOrigin | null
  /** What it needs of an engine, as the key of its lane; '' where every engine of the pool runs everything. */
  readonly needs: string
  /** What it shares with other jobs of its workflow; left out: it is not found by its workflow. */
  readonly recipe?: JobRecipe | null
  /** A webhook of this job, in addition to those of its account. */
  readonly hook?: NewHook | null
  /** Its result is kept for others of its account, once it has one. */
  readonly keepsResult?: boolean
  /** In a batch: it is answered with this result, if that is still there. */
  readonly again?: ResultAgain | null
  /** It is held until then; left out or null: it may run at once. */
  readonly notBefore?: Date | null
  /** It is not worth running when it still waits then. */
  readonly queueUntil?: Date | null
  /** What it has to fit into, beside the limits of its account; left out: nothing. */
  readonly within?: readonly RunBound[]
}

/** A result that was found for a job. */
export interface ResultAgain {
  readonly key: string
  /** One new id for each of its outputs. */
  readonly assetIds: readonly string[]
}

/** What a job of the account made that had the same key, and still has. */
export interface KeptResult {
  readonly jobId: string
  readonly outputs: readonly Output[]
  /** How long the run took that made it. */
  readonly runMs: number
}

export type AnswerOutcome =
  | { readonly outcome: 'answered'; readonly job: Job }
  /** The result went meanwhile: nothing was written. */
  | { readonly outcome: 'gone' }
  | { readonly outcome: 'key_reused'; readonly holder: KeyHolder }
  | { readonly outcome: 'pool_closed' }
  | { readonly outcome: 'out_of_bounds'; readonly excess: RunExcess }

export type SubmitOutcome =
  | { readonly outcome: 'queued'; readonly job: Job }
  | { readonly outcome: 'key_reused'; readonly holder: KeyHolder }
  | { readonly outcome: 'queue_full' }
  /** `budget`: the one that is used up; left out: the account has not enough credit. */
  | { readonly outcome: 'insufficient_credits'; readonly budget?: BudgetExcess }
  | { readonly outcome: 'id_taken' }
  /** The pool is that of a deployment which takes no jobs now. */
  | { readonly outcome: 'pool_closed' }
  /** One of its bounds is in the way. */
  | { readonly outcome: 'out_of_bounds'; readonly excess: RunExcess }

export interface ClaimRequest {
  readonly pool: string
  readonly workerId: string
  readonly leaseId: string
  readonly leaseUntil: Date
  readonly now: Date
  /** The engines that have a free slot, each with the lanes it serves; at equal rank the earlier one takes the job. */
  readonly engines: readonly EngineOffer[]
  /**
   * A job is overtaken, for the sake of loaded weights, by at most this many jobs that were submitted after it.
   */
  readonly maxOvertakes: number
  /**
   * Among accounts whose use of the pool's engines is at most so much above the least of those that wait, loaded weights decide who is
   * next. Left out: 0, so that the account with the least is.
   */
  readonly creditMs?: number
}

export interface Claim {
  readonly job: Job
  readonly leaseId: string
  /** It is a run that the engine may have already: the id of the lease under which it began there. Left out: it begins. */
  readonly runId?: string
  /** The engine that was chosen for it. */
  readonly engineId: string
  readonly needs: string
  readonly workflow: string
  readonly inputs: readonly JobInput[]
  readonly needsExtraData: boolean
  /** Handed over with every claim; erased when the job ends. */
  readonly sealedExtraData: Uint8Array | null
  readonly notes: string | null
  /** Outputs of earlier attempts, which are no longer listed with the job; of an adopted run, those that it lists. */
  readonly earlierOutputs: readonly Output[]
  /** How many of its earlier attempts failed for a reason that may have been their engine's. */
  readonly engineLosses: number
  /** Its end brings the key of its result, where it has one. */
  readonly keepsResult?: boolean
  /** Its outputs are written with its end, because the service has them checked before. */
  readonly holdsOutputs?: boolean
  /** The trace that its submit belonged to; left out or null: none is known. */
  readonly trace?: TraceContext | null
}

export interface Lease {
  readonly jobId: string
  readonly leaseId: string
}

/** A lease that its worker gives back. */
export interface ReturnedLease extends Lease {
  /** The attempt counts; left out: it is given back with the lease. */
  readonly isSpent?: boolean
  /** The attempt failed for a reason that may have been the engine's; `Claim.engineLosses` counts these. */
  readonly isEngineLoss?: boolean
  /**
   * It gave way to other accounts: the job goes behind all that wait of its own account, and that is treated as if it had been served
   * so many claims after the latest one. Left out or 0: the job goes back to its former position.
   */
  readonly spentTurns?: number
  /** What the attempt took of a server; left out or null: none computed anything of it. */
  readonly gpu?: GpuUse | null
}

export interface HeldRunsQuery {
  /** Only those whose lease ran out before this moment; left out: all. */
  readonly lapsedBefore?: Date
}

/** A run that has not ended, whoever follows it. */
export interface HeldRun extends Lease {
  readonly engineId: string
  readonly attempt: number
  /** The id of the lease under which it began. */
  readonly runId: string
  readonly leaseUntil: Date
}

/** A process that reaches engines asks for what others left running there. */
export interface AdoptRequest extends Pick<ClaimRequest, 'pool' | 'workerId' | 'leaseId' | 'leaseUntil' | 'now'> {
  readonly engineIds: readonly string[]
}

/** Who holds slots, and what others would have to wait for there. */
export interface OutwaitedQuery {
  readonly pool: string
  readonly now: Date
  /** The lanes that the slots serve; null: they take whatever waits in the pool. */
  readonly lanes: readonly string[] | null
  /** Accounts that hold jobs. */
  readonly accountIds: readonly string[]
}

/** What a worker writes while it holds the lease, or as its last write. */
export interface RunChange {
  readonly progress?: Progress
  readonly outputs?: readonly Output[]
  readonly outputsReused?: boolean
  readonly log?: JobLog
  /** The last write: ends the lease and no longer counts the job as running for its account. */
  readonly finish?: {
    readonly status: RunEndStatus
    /** `statesBeforeEnd` of this status. */
    readonly from: readonly JobStatus[]
    readonly at: Date
    readonly error: JobError | null
    /** What the run showed; null when it never began. */
    readonly record?: RunRecord | null
    /** Of a success: its outputs answer further jobs with this key; left out or null: they do not. */
    readonly resultKey?: string | null
    /** What the attempt took of a server; left out or null: none computed anything of it. */
    readonly gpu?: GpuUse | null
  }
}

/** `lost`: another worker has the job, or it has ended; the run is discarded. */
export type CommitOutcome =
  | {
      readonly outcome: 'committed'
      readonly version: number
      readonly status: JobStatus
      /** As it stands after its last write; absent after any other. */
      readonly job?: Job
      /** Why it failed, where another end was written than the one that was asked for. */
      readonly error?: JobError | null
    }
  | { readonly outcome: 'lost' }

export type CancelOutcome =
  | { readonly outcome: 'canceled' | 'canceling' | 'already_terminal' | 'left_running'; readonly job: Job }
  | { readonly outcome: 'not_found' }

export interface ListQuery {
  /** Jobs of this pool only; left out or null: of every pool. */
  readonly pool?: string | null
  /** Jobs of this batch only; left out or null: of any, and of none. */
  readonly batchId?: string | null
  readonly statuses: readonly JobStatus[] | null
  readonly metadata: Readonly<Record<string, string>>
  readonly limit: number
  /** A page ends early, behind the job with which its outputs become this many; left out: it does not. */
  readonly maxOutputs?: number
  /** The last job of the page before. */
  readonly after: { readonly createdAt: Date; readonly id: string } | null
  readonly now: Date
}

/** A job that a sweep touched, for the notices that follow. */
export interface TouchedJob {
  readonly jobId: string
  readonly accountId: string
  readonly version: number
  readonly status: JobStatus
}

export interface LanePlace {
  readonly pool: string
  readonly lane: string
}

export interface WaitingLane extends LanePlace {
  readonly workflow: string
}

/** What a worker needs of the store: it may be this process's own, or another process's that answers over a wire. */
export interface RunStore extends Pick<JobStore, 'claim' | 'renew' | 'commit' | 'release'> {
  /** Both left out by a store whose runs end with the process that follows them. */
  readonly adopt?: JobStore['adopt']
  readonly leave?: JobStore['leave']
  /** Left out by a store that asks again by itself until a claim is answered. */
  readonly findClaim?: JobStore['findClaim']
  /** Left out by a store that does not tell who else waits. */
  readonly findOutwaited?: JobStore['findOutwaited']
  /** `lease`: of the run that needs them. A store that is asked directly needs no proof of it. */
  reserveOutputNumbers(accountId: string, folder: string, prefix: string, count: number, lease: Lease): Promise<number>
}

export interface JobStore {
  /** One transaction: idempotency key, the pool's deployment (if it is one's), credit hold, queue bound, job row, counters. */
  submit(job: NewJob, claim: KeyClaim | null): Promise<SubmitOutcome>

  /** null: no succeeded job of the account has this key and all of its outputs. */
  findResult(accountId: string, key: string, now: Date): Promise<KeptResult | null>
  /**
   * One transaction: idempotency key, the pool's deployment, and a job that has succeeded without a run, with outputs of its own over
   * the same bytes. It needs no room in the queue and costs nothing. Its id is not the caller's choice.
   */
  answerAgain(job: NewJob, again: ResultAgain, claim: KeyClaim | null): Promise<AnswerOutcome>
  /** Forgets keys whose jobs are past their retention; returns how many. */
  sweepResults(now: Date): Promise<number>
  /** Forgets what accounts used of pools where they ran nothing since then: long ago they would have been forgiven it. */
  sweepShares(before: Date): Promise<number>

  /** null for a job that is unknown, not this account's, or past its retention. */
  find(accountId: string, jobId: string, now: Date): Promise<Job | null>
  /**
   * Only where other processes write to the store as well: the version of a job while it lives, null once it has ended. It costs
   * less than `find` and tells whether a copy in memory is still what the store has.
   */
  findLiveVersion?(jobId: string): Promise<number | null>
  findWorkflow(accountId: string, jobId: string, now: Date): Promise<string | null>
  findLog(accountId: string, jobId: string, now: Date): Promise<JobLog | null>
  /** Newest first by (createdAt, id). Asks for one more than `limit`, so that the caller knows whether there is a next page. */
  list(accountId: string, query: ListQuery): Promise<Job[]>

  /**
   * The best queued job whose account may run one more, with an engine that can run it, or null. Where engines offer lanes, each account
   * has used so much of the pool's time: what its runs took, and what those that run are foreseen to take, by its share. Among the
   * accounts within `creditMs` of the least, the engines' ranks decide within `maxOvertakes`, then the least use, then submit order;
   * inside an account priority comes first. One that comes back has used as much as the least of those that waited meanwhile.
   * An engine without lanes takes the job of the account with the fewest running jobs, then of the one that was served longest ago.
   * Costs the same whatever the backlog: it looks at the head of each lane.
   * Outputs of an earlier attempt are no longer listed from here on; their assets stay readable until the end of the job's
   * retention, for clients that know them.
   */
  claim(request: ClaimRequest): Promise<Claim | null>
  /**
   * What a lease holds, as the claim returned it; null: nothing, or no longer. For a worker that did not get the answer, and for those
   * that serve a worker without a store. Outputs of earlier attempts are not told a second time.
   */
  findClaim(leaseId: string): Promise<Claim | null>
  /**
   * Lanes with waiting jobs that are not among `known`, of all pools, each with the workflow of one of its jobs: the first ones by
   * pool and lane. `after`: those that come behind this one.
   */
  findLanes(known: readonly string[], after?: LanePlace): Promise<readonly WaitingLane[]>
  /** Puts waiting jobs that have no lane into this one, in every pool; returns how many. */
  joinLane(lane: string): Promise<number>
  /** Extends leases in one statement and returns the job ids of those still held, with their status (a cancel may have come). */
  renew(
    leases: readonly Lease[],
    until: Date,
  ): Promise<readonly { readonly jobId: string; readonly status: JobStatus }[]>
  /** A repeated end, of the same status under the same lease, is answered as the first one was, and changes nothing. */
  commit(lease: Lease, change: RunChange): Promise<CommitOutcome>
  /**
   * Takes a running job back as if it had never been submitted, with its key and its hold, before its submit was answered.
   * False: the lease is lost, or a cancel came.
   */
  withdraw(lease: Lease, now: Date): Promise<boolean>
  /** Gives jobs back to the queue at once. A canceling job becomes canceled; it is not charged if its attempt was spent. */
  release(leases: readonly ReturnedLease[], now: Date): Promise<TouchedJob[]>
  /**
   * Which of these accounts have to give way: another one waits that may run a job and runs none, or at least two fewer. With a
   * smaller difference the two would only take turns with each other.
   */
  findOutwaited(query: OutwaitedQuery): Promise<readonly string[]>
  /** queued -> canceled, running -> canceling; everything else stays. `isOnlyQueued`: one that runs is `left_running`. */
  cancel(accountId: string, jobId: string, now: Date, isOnlyQueued?: boolean): Promise<CancelOutcome>
  /**
   * Jobs whose lease ran out before `now`: requeued with the next attempt, or ended with `error` once `maxAttempts` were
   * spent (`canceled` when a cancel was under way). `lapsedBefore` (default `now`) lets a start-up take leases that a dead
   * process of this directory still holds, while whatever ends is dated `now`. `spared`: engines whose runs may still be adopted;
   * a run that was adopted too often in a row is not spared.
   */
  reap(options: {
    now: Date
    lapsedBefore?: Date
    maxAttempts: number
    error: JobError
    spared?: readonly string[]
  }): Promise<TouchedJob[]>
  findRuns(query: HeldRunsQuery): Promise<readonly HeldRun[]>
  /** Ends leases and leaves the runs where they are: they stay `running` until somebody adopts them, or they are reaped. */
  leave(leases: readonly Lease[], now: Date): Promise<number>
  /** A run on one of these engines whose lease ran out, with the attempt that it has, or null. It is taken by one asker only. */
  adopt(request: AdoptRequest): Promise<Claim | null>
  /** Live jobs past their retention become `expired`. */
  expire(now: Date, limit: number): Promise<TouchedJob[]>
  /** Removes terminal jobs past their retention (expired ones once `expiredBefore` has passed) with logs, workflow and outputs. */
  remove(options: { now: Date; expiredBefore: Date; limit: number }): Promise<number>
  /**
   * Only where ended jobs are kept by ranges of their expiry: removes the ranges that are over, whole, and returns how many jobs
   * went. It costs far less than `remove` and is used in its place; jobs past their retention are then invisible for a while
   * before they are gone. `limit` is about how many jobs one call takes; the signal ends it early.
   */
  dropExpired?(options: { now: Date; expiredBefore: Date; limit: number; signal?: AbortSignal }): Promise<number>

  /** The first of `count` consecutive numbers for output names of this account, folder and prefix; the first ever is 1. */
  reserveOutputNumbers(accountId: string, folder: string, prefix: string, count: number): Promise<number>
  /** Whose job this is, for operators; null when there is none. */
  findOwner(jobId: string): Promise<string | null>
  /** By job, the id of the worker that holds it now; those that nobody holds are not among them. */
  findHolders(jobIds: readonly string[]): Promise<ReadonlyMap<string, string>>
  countByStatus(): Promise<Readonly<Record<JobStatus, number>>>
}
