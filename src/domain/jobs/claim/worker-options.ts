/** What a worker needs and what may be set, with the reasons for the defaults. */
import type { NewId } from '../../../../lib/ids.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import type { RunStore } from '../job-store.ts'
import { type JobObserver, silentObserver } from '../observer.ts'
import type { CommitPace } from '../run/committer.ts'
import type { RunDeps, RunLimits } from '../run/run-deps.ts'
import { MAX_ATTEMPTS } from '../sweeps/job-chores.ts'

/** What a worker uses of a fleet. */
type WorkerFleet = Pick<
  Fleet,
  'claimExclusively' | 'offers' | 'adoptable' | 'take' | 'nextRoomMs' | 'forget' | 'onChange'
>

export interface WorkerDeps
  extends Pick<
    RunDeps,
    | 'storeBlob'
    | 'outputCheck'
    | 'storageLeft'
    | 'storageWatch'
    | 'blobs'
    | 'bus'
    | 'extraData'
    | 'clock'
    | 'log'
    | 'onStored'
    | 'mustBeActive'
    | 'verdicts'
    | 'findWeights'
    | 'tracer'
  > {
  readonly store: RunStore
  readonly fleet: WorkerFleet
  /** For leases and for the assets of outputs. */
  readonly newId: NewId
  readonly observer?: JobObserver
  /** Shared with all other long work on this thread; left out: the worker's own. */
  readonly turns?: Turns

  readonly pool: string
  /** How many jobs run at a time, however many slots the engines have. */
  readonly workers: number
  readonly workerId?: string
  /** Files of the engine's `temp` folder count as outputs. */
  readonly previewOutputs?: boolean
  readonly leaseMs?: number
  /** How long beyond its lease a run goes on while the store is away; left out: for one more lease time. */
  readonly outageGraceMs?: number
  readonly renewEveryMs?: number
  readonly pollEveryMs?: number
  /** Whether notices of work are known to arrive; then the worker polls seldom. Left out: they cannot be lost, or it is unknown. */
  readonly isWoken?: () => boolean
  readonly parallelIngests?: number
  /** The pause after the storage had no room. It doubles while that goes on, so that jobs do not spend all attempts at once. */
  readonly storageRetryMs?: number
  readonly maxOvertakes?: number
  readonly creditMs?: number
  readonly progressEveryMs?: number
  readonly firstProgressMs?: number
  readonly outputLingerMs?: number
  readonly maxAttempts?: number
  /** The same for everybody, or each account's own. */
  readonly maxRunMs?: number | null | RunLimits['maxRunMs']
  readonly cancelGraceMs?: number
  readonly maxIngestMs?: number
  readonly maxOutputs?: number
  readonly maxOutputBytes?: number
}

/**
 * Loading weights takes as long as a job or several. On a real load of many accounts, a bound of 64 jobs costs twice the loads of this
 * one, and everybody waits longer for it; without any bound an account could be overtaken for ever by others that come anew.
 */
export const MAX_OVERTAKES = 1024
/**
 * So much more of the engines' time than the least an account may have had while loaded weights let it go first: some eight pictures.
 * On the same load half of it costs a fifth more loads, twice of it makes accounts with few jobs wait longer.
 */
export const CREDIT_MS = 180_000

export interface WorkerOptions {
  readonly pool: string
  readonly workers: number
  readonly workerId: string
  readonly leaseMs: number
  readonly outageGraceMs: number
  readonly renewEveryMs: number
  readonly pollEveryMs: number
  readonly wokenPollEveryMs: number
  readonly isWoken: () => boolean
  readonly parallelIngests: number
  readonly storageRetryMs: number
  readonly maxOvertakes: number
  readonly creditMs: number
  readonly observer: JobObserver
  readonly pace: CommitPace
  readonly limits: RunLimits
}

export function readWorkerOptions(deps: WorkerDeps): WorkerOptions {
  const { maxRunMs = null } = deps
  return {
    pool: deps.pool,
    workers: deps.workers,
    workerId: deps.workerId ?? deps.newId(),
    // Three renewals may fail before a lease lapses.
    leaseMs: deps.leaseMs ?? 30_000,
    outageGraceMs: deps.outageGraceMs ?? deps.leaseMs ?? 30_000,
    renewEveryMs: deps.renewEveryMs ?? 10_000,
    pollEveryMs: deps.pollEveryMs ?? 1000,
    // Many idle processes must cost their database next to nothing.
    wokenPollEveryMs: deps.pollEveryMs ?? 10_000,
    isWoken: deps.isWoken ?? (() => false),
    parallelIngests: deps.parallelIngests ?? 4,
    storageRetryMs: deps.storageRetryMs ?? 1000,
    maxOvertakes: deps.maxOvertakes ?? MAX_OVERTAKES,
    creditMs: deps.creditMs ?? CREDIT_MS,
    observer: deps.observer ?? silentObserver,
    pace: {
      progressEveryMs: deps.progressEveryMs ?? 500,
      firstProgressMs: deps.firstProgressMs ?? 100,
      outputLingerMs: deps.outputLingerMs ?? 10,
    },
    limits: {
      maxAttempts: deps.maxAttempts ?? MAX_ATTEMPTS,
      maxRunMs: typeof maxRunMs === 'function' ? maxRunMs : () => maxRunMs,
      cancelGraceMs: deps.cancelGraceMs ?? 10_000,
      maxIngestMs: deps.maxIngestMs ?? 600_000,
      maxOutputs: deps.maxOutputs ?? 10_000,
      maxOutputBytes: deps.maxOutputBytes ?? 64 * 1024 ** 3,
    },
  }
}
