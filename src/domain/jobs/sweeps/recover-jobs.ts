/**
 * Takes jobs back from workers that are gone: a lapsed lease sends a job to its next attempt, or ends it once its attempts
 * are spent. Where a store proves that no other process is alive, every lease that it holds at the start counts as lapsed.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { EventBus } from '../../events/event-bus.ts'
import { toJobError } from '../end/end-of-run.ts'
import type { JobStore, TouchedJob } from '../job-store.ts'
import { type JobObserver, silentObserver } from '../observer.ts'
import type { ExtraDataKeeper } from '../submit/extra-data-keeper.ts'
import { announceTouched } from './announce-touched.ts'

interface RecoverDeps {
  readonly store: Pick<JobStore, 'reap'>
  readonly bus: Pick<EventBus<never>, 'publishChanged' | 'publishWork'>
  readonly clock: Clock
  readonly extraData: Pick<ExtraDataKeeper, 'forget'>
  readonly observer?: JobObserver
  readonly maxAttempts?: number
}

interface RecoverOptions {
  /** Only with proof that no other process holds a lease. */
  readonly releaseAll?: boolean
  /** Ends it between two portions. */
  readonly signal?: AbortSignal
}

export type Recover = (options?: RecoverOptions) => Promise<readonly TouchedJob[]>

export const MAX_ATTEMPTS = 3
const MAX_ROUNDS = 1000
// The latest moment that a Date can hold: every lease ends before it.
const END_OF_TIME = new Date(8_640_000_000_000_000)

export function createRecover(deps: RecoverDeps): Recover {
  const { store, clock, maxAttempts = MAX_ATTEMPTS } = deps
  const observer = deps.observer ?? silentObserver
  const error = toJobError('worker_lost', `the worker was lost ${maxAttempts} times while it ran this job`)

  return async function recover({ releaseAll = false, signal } = {}) {
    const all: TouchedJob[] = []
    // A store may take back a bounded number at a time.
    for (let round = 0; round < MAX_ROUNDS && !signal?.aborted; round++) {
      const now = clock.now()
      const touched = await store.reap({ now, lapsedBefore: releaseAll ? END_OF_TIME : now, maxAttempts, error })
      if (touched.length === 0) break
      announceTouched({ ...deps, observer }, touched, error.code)
      all.push(...touched)
    }
    return all
  }
}
