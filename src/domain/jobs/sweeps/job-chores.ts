/** The chores of the job store and their intervals. Other modules (assets, keys) have chores of their own. */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { AccountStore } from '../../accounts/account-store.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { IdempotencyStore } from '../../idempotency/idempotency-key.ts'
import { type Heartbeat, isSteady } from '../../service-nodes/heartbeat.ts'
import type { BatchStore } from '../batches/batch-store.ts'
import type { BulkStore } from '../bulk/bulk-store.ts'
import type { JobStore, TouchedJob } from '../job-store.ts'
import { type JobObserver, silentObserver } from '../observer.ts'
import { GPU_USE_KEPT_MS, type GpuUseStore } from '../read/gpu-report.ts'
import { toJobError } from '../run/run-moves.ts'
import type { ExtraDataKeeper } from '../submit/extra-data-keeper.ts'
import type { SummaryStore } from '../summaries/summary-store.ts'
import { announceTouched } from './announce-touched.ts'
import type { Chore } from './housekeeping.ts'
import type { FindSpared } from './spared-engines.ts'

interface ChoreDeps {
  readonly recover: Recover
  readonly expiry: Expiry
  readonly keys: Pick<IdempotencyStore, 'sweepKeys'>
  readonly batches: Pick<BatchStore, 'sweep'>
  readonly bulkActions: Pick<BulkStore, 'sweep'>
  readonly jobs: Pick<JobStore, 'sweepResults' | 'sweepShares'>
  readonly accounts: Pick<AccountStore, 'repairCounters'>
  readonly gpuUse: Pick<GpuUseStore, 'sweep'>
  readonly summaries: Pick<SummaryStore, 'sweepRecipes'>
  readonly extraData: Pick<ExtraDataKeeper, 'sweep'>
  readonly heartbeat: Pick<Heartbeat, 'steadyForMs'>
  readonly clock: Clock
  readonly log: Log
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const SWEPT_RECIPES = 10_000
// Each may have thousands of rows.
const SWEPT_ACTIONS = 10
const SWEPT_AT_ONCE = 200
/** What an account used of a pool counts for as long behind its last run there. */
const SHARES_KEPT_MS = 24 * 60 * MINUTE_MS

export function createJobChores(deps: ChoreDeps): Chore[] {
  const { recover, expiry, keys, batches, bulkActions, jobs, accounts, summaries, gpuUse, extraData, clock } = deps
  const { log } = deps
  return [
    {
      name: 'reap-leases',
      runs: 'once',
      everyMs: 5 * SECOND_MS,
      run: async (signal) => (isSteady(deps.heartbeat) ? recover({ signal }) : []),
    },
    { name: 'expire-jobs', runs: 'once', everyMs: 5 * SECOND_MS, run: (signal) => expiry.expireLive(signal) },
    { name: 'remove-jobs', runs: 'once', everyMs: MINUTE_MS, run: (signal) => expiry.removeOld(signal) },
    {
      name: 'sweep-recipes',
      runs: 'once',
      everyMs: 60 * MINUTE_MS,
      run: () => summaries.sweepRecipes(clock.now(), SWEPT_RECIPES),
    },
    { name: 'forget-credentials', runs: 'each', everyMs: MINUTE_MS, run: async () => extraData.sweep(clock.now()) },
    { name: 'sweep-batches', runs: 'once', everyMs: 10 * MINUTE_MS, run: () => batches.sweep(clock.now()) },
    {
      name: 'sweep-bulk-actions',
      runs: 'once',
      everyMs: MINUTE_MS,
      run: () => bulkActions.sweep(clock.now(), SWEPT_ACTIONS),
    },
    { name: 'sweep-results', runs: 'once', everyMs: 10 * MINUTE_MS, run: () => jobs.sweepResults(clock.now()) },
    {
      name: 'sweep-shares',
      runs: 'once',
      everyMs: 60 * MINUTE_MS,
      run: () => jobs.sweepShares(new Date(clock.now().getTime() - SHARES_KEPT_MS)),
    },
    {
      name: 'sweep-gpu-use',
      runs: 'once',
      everyMs: 60 * MINUTE_MS,
      async run(signal) {
        const before = new Date(clock.now().getTime() - GPU_USE_KEPT_MS)
        while (!signal.aborted && (await gpuUse.sweep(before, SWEPT_AT_ONCE)) === SWEPT_AT_ONCE);
      },
    },
    { name: 'sweep-keys', runs: 'once', everyMs: 10 * MINUTE_MS, run: () => keys.sweepKeys(clock.now()) },
    {
      name: 'repair-counters',
      runs: 'once',
      // Rare, because it counts every row. Each transaction keeps the counters exact; this repairs what a defect may have broken.
      everyMs: 60 * MINUTE_MS,
      async run() {
        const wrong = await accounts.repairCounters()
        if (wrong > 0) log.warn({ wrong }, 'account counters differed from the rows they count and were repaired')
      },
    },
  ]
}

interface ExpireDeps {
  readonly store: Pick<JobStore, 'expire' | 'remove' | 'dropExpired'>
  readonly bus: Pick<EventBus<never>, 'publishChanged' | 'publishWork'>
  readonly clock: Clock
  readonly extraData: Pick<ExtraDataKeeper, 'forget'>
  readonly observer?: JobObserver
  readonly expiredGraceMs?: number
  /** How many one transaction takes: a sweep must not hold up submits. */
  readonly batch?: number
}

interface Expiry {
  /** Both return how many jobs they took; the signal ends them between two batches. */
  expireLive(signal?: AbortSignal): Promise<number>
  removeOld(signal?: AbortSignal): Promise<number>
}

const HOUR_MS = 3_600_000
const MAX_BATCHES = 100

/**
 * The end of retention: live jobs past their deadline become `expired` (the notice stops whoever runs them), and ended jobs
 * are removed with everything that belongs to them. An expired job stays readable for a grace period.
 */
export function createExpiry(deps: ExpireDeps): Expiry {
  const { store, clock, expiredGraceMs = HOUR_MS, batch = 200 } = deps
  const observer = deps.observer ?? silentObserver

  async function inBatches(sweep: () => Promise<number>, signal?: AbortSignal): Promise<number> {
    let total = 0
    for (let round = 0; round < MAX_BATCHES && !signal?.aborted; round++) {
      const count = await sweep()
      total += count
      if (count < batch) break
    }
    return total
  }

  function untilNow() {
    const now = clock.now()
    return { now, expiredBefore: new Date(now.getTime() - expiredGraceMs) }
  }

  return {
    expireLive: (signal) =>
      inBatches(async () => {
        const touched = await store.expire(clock.now(), batch)
        announceTouched({ ...deps, observer }, touched, null)
        return touched.length
      }, signal),
    removeOld: (signal) =>
      inBatches(() => {
        const options = { ...untilNow(), limit: batch }
        if (store.dropExpired === undefined) return store.remove(options)
        return store.dropExpired(signal === undefined ? options : { ...options, signal })
      }, signal),
  }
}

interface RecoverDeps {
  readonly store: Pick<JobStore, 'reap' | 'findRuns'>
  readonly findSpared: FindSpared
  readonly bus: Pick<EventBus<never>, 'publishChanged' | 'publishWork'>
  readonly clock: Clock
  readonly extraData: Pick<ExtraDataKeeper, 'forget'>
  readonly observer?: JobObserver
  readonly maxAttempts?: number
}

interface RecoverOptions {
  /** Ends it between two portions. */
  readonly signal?: AbortSignal
}

type Recover = (options?: RecoverOptions) => Promise<readonly TouchedJob[]>

/**
 * Takes jobs back from workers that are gone: a lapsed lease sends a job to its next attempt, or ends it once its attempts
 * are spent. Runs that their engines go on with are left for whoever adopts them, for a while.
 */
export const MAX_ATTEMPTS = 3
const MAX_ROUNDS = 1000

export function createRecover(deps: RecoverDeps): Recover {
  const { store, clock, findSpared, maxAttempts = MAX_ATTEMPTS } = deps
  const observer = deps.observer ?? silentObserver
  const error = toJobError('worker_lost', `the worker was lost ${maxAttempts} times while it ran this job`)

  return async function recover({ signal } = {}) {
    const all: TouchedJob[] = []
    // A store may take back a bounded number at a time.
    for (let round = 0; round < MAX_ROUNDS && !signal?.aborted; round++) {
      const now = clock.now()
      const spared = await findSpared(await store.findRuns({ lapsedBefore: now }))
      const touched = await store.reap({ now, maxAttempts, error, spared })
      if (touched.length === 0) break
      announceTouched({ ...deps, observer }, touched, error.code)
      all.push(...touched)
    }
    return all
  }
}
