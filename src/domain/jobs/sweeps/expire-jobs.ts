/**
 * The end of retention: live jobs past their deadline become `expired` (the notice stops whoever runs them), and ended jobs
 * are removed with everything that belongs to them. An expired job stays readable for a grace period.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { JobStore } from '../job-store.ts'
import { type JobObserver, silentObserver } from '../observer.ts'
import type { ExtraDataKeeper } from '../submit/extra-data-keeper.ts'
import { announceTouched } from './announce-touched.ts'

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

export interface Expiry {
  /** Both return how many jobs they took; the signal ends them between two batches. */
  expireLive(signal?: AbortSignal): Promise<number>
  removeOld(signal?: AbortSignal): Promise<number>
}

const HOUR_MS = 3_600_000
const MAX_BATCHES = 100

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
