/**
 * The clock of the service: that of its store, so that leases and windows mean the same to every process. An embedded store has this
 * machine's time; the time of a database server is followed, by what every beat brings back.
 */
import { type Clock, systemClock } from '../../../lib/clock.ts'
import { createFollowedClock } from '../../../lib/followed-clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { Store } from '../../domain/store.ts'

export interface ServiceClock {
  readonly clock: Clock
  /** Sets the clock by the store's before anything depends on it. */
  begin(store: Pick<Store, 'readTime'>): Promise<void>
  /** Keeps it set: asks for the store's time once. null: the store has none of its own. */
  sample(read: () => Promise<Date | null>): Promise<void>
  /** False while the store's time and the time that passes here contradict each other. */
  isSane(): boolean
}

// The first answers come over connections that are still being made.
const FIRST_SAMPLES = 5
const MAX_DRIFT_MS = 2000

export function openClock({ isFollowed, log }: { readonly isFollowed: boolean; readonly log: Log }): ServiceClock {
  if (!isFollowed) return toServiceClock(systemClock)
  const clock = createFollowedClock(systemClock.now())
  const isSane = () => clock.driftMs() <= MAX_DRIFT_MS
  return {
    clock,
    isSane,
    async begin(store) {
      for (let count = 0; count < FIRST_SAMPLES; count++) await clock.sample(() => store.readTime())
    },
    async sample(read) {
      await clock.sample(read)
      if (!isSane()) log.warn({ driftMs: clock.driftMs() }, 'the time of the store jumped, or that of this machine')
    },
  }
}

/** A clock that needs no setting. */
export function toServiceClock(clock: Clock): ServiceClock {
  return { clock, isSane: () => true, async begin() {}, sample: async (read) => void (await read()) }
}
