/** The chores of the job store and their intervals. Other modules (assets, keys) have chores of their own. */

import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { AccountStore } from '../../accounts/account-store.ts'
import type { IdempotencyStore } from '../../idempotency/idempotency-key.ts'
import type { Expiry } from './expire-jobs.ts'
import type { Chore } from './housekeeping.ts'
import type { Recover } from './recover-jobs.ts'

interface ChoreDeps {
  readonly recover: Recover
  readonly expiry: Expiry
  readonly keys: Pick<IdempotencyStore, 'sweepKeys'>
  readonly accounts: Pick<AccountStore, 'repairCounters'>
  readonly clock: Clock
  readonly log: Log
}

const SECOND_MS = 1000
const MINUTE_MS = 60 * SECOND_MS

export function createJobChores({ recover, expiry, keys, accounts, clock, log }: ChoreDeps): Chore[] {
  return [
    { name: 'reap-leases', everyMs: 5 * SECOND_MS, run: () => recover() },
    { name: 'expire-jobs', everyMs: 5 * SECOND_MS, run: () => expiry.expireLive() },
    { name: 'remove-jobs', everyMs: MINUTE_MS, run: () => expiry.removeOld() },
    { name: 'sweep-keys', everyMs: 10 * MINUTE_MS, run: () => keys.sweepKeys(clock.now()) },
    {
      name: 'repair-counters',
      // Rare, because it counts every row. Each transaction keeps the counters exact; this mends what a defect may have broken.
      everyMs: 60 * MINUTE_MS,
      async run() {
        const wrong = await accounts.repairCounters()
        if (wrong > 0) log.warn({ wrong }, 'account counters differed from the rows they count and were repaired')
      },
    },
  ]
}
