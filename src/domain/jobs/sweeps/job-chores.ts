/** The chores of the job store and their intervals. Other modules (assets, keys) have chores of their own. */

import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { AccountStore } from '../../accounts/account-store.ts'
import type { IdempotencyStore } from '../../idempotency/idempotency-key.ts'
import { type Heartbeat, isSteady } from '../../service-nodes/heartbeat.ts'
import type { BatchStore } from '../batches/batch-store.ts'
import type { JobStore } from '../job-store.ts'
import type { ExtraDataKeeper } from '../submit/extra-data-keeper.ts'
import type { SummaryStore } from '../summaries/summary-store.ts'
import type { Expiry } from './expire-jobs.ts'
import type { Chore } from './housekeeping.ts'
import type { Recover } from './recover-jobs.ts'

interface ChoreDeps {
  readonly recover: Recover
  readonly expiry: Expiry
  readonly keys: Pick<IdempotencyStore, 'sweepKeys'>
  readonly batches: Pick<BatchStore, 'sweep'>
  readonly jobs: Pick<JobStore, 'sweepResults'>
  readonly accounts: Pick<AccountStore, 'repairCounters'>
  readonly summaries: Pick<SummaryStore, 'sweepRecipes'>
  readonly extraData: Pick<ExtraDataKeeper, 'sweep'>
  readonly heartbeat: Pick<Heartbeat, 'steadyForMs'>
  readonly clock: Clock
  readonly log: Log
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS
const SWEPT_RECIPES = 10_000

export function createJobChores(deps: ChoreDeps): Chore[] {
  const { recover, expiry, keys, batches, jobs, accounts, summaries, extraData, clock, log } = deps
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
    { name: 'sweep-results', runs: 'once', everyMs: 10 * MINUTE_MS, run: () => jobs.sweepResults(clock.now()) },
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
