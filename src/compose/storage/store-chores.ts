/** What a store that several processes share needs now and then. An embedded one looks after itself. */
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { StoreUpkeep } from '../../domain/store.ts'

const MINUTE_MS = 60_000

export function createStoreChores(upkeep: StoreUpkeep | null): Chore[] {
  if (upkeep === null) return []
  return [
    { name: 'reclaim-rows', runs: 'once', everyMs: MINUTE_MS, run: (signal) => upkeep.reclaim(signal) },
    {
      name: 'renew-statistics',
      runs: 'once',
      everyMs: 60 * MINUTE_MS,
      run: (signal) => upkeep.renewStatistics(signal),
    },
  ]
}
