/** What a store that several processes share needs now and then. An embedded one looks after itself. */
import type { Clock } from '../../../lib/clock.ts'
import type { Chore } from '../../domain/jobs/sweeps/housekeeping.ts'
import type { StoreUpkeep } from '../../domain/store.ts'

interface StoreChoreOptions {
  readonly clock: Clock
  /** How long jobs are kept. */
  readonly retentionMs: number
}

const MINUTE_MS = 60_000
// Enough time for an operator to fix whatever keeps the chore from running.
const AHEAD_MS = 2 * 24 * 60 * MINUTE_MS

export function createStoreChores(upkeep: StoreUpkeep | null, { clock, retentionMs }: StoreChoreOptions): Chore[] {
  if (upkeep === null) return []
  return [
    { name: 'reclaim-rows', runs: 'once', everyMs: MINUTE_MS, run: (signal) => upkeep.reclaim(signal) },
    {
      name: 'renew-statistics',
      runs: 'once',
      everyMs: 60 * MINUTE_MS,
      run: (signal) => upkeep.renewStatistics(signal),
    },
    {
      name: 'prepare-expiries',
      runs: 'once',
      everyMs: 60 * MINUTE_MS,
      async run() {
        const fromMs = clock.now().getTime() + retentionMs
        await upkeep.prepareExpiries({ from: new Date(fromMs), to: new Date(fromMs + AHEAD_MS) })
      },
    },
  ]
}
