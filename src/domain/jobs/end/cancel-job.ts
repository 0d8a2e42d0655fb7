/**
 * A cancel is a change of the job, not a call into a worker: a queued job ends at once, a running one becomes `canceling`
 * and the notice wakes the worker that runs it. Repeating it is harmless, and a job that has ended stays as it is.
 */
import type { Clock } from '../../../../lib/clock.ts'
import { isUuid } from '../../../../lib/ids.ts'
import { ServiceError } from '../../errors.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { Job } from '../job.ts'
import type { JobStore } from '../job-store.ts'
import { type JobObserver, silentObserver } from '../observer.ts'
import type { ExtraDataKeeper } from '../submit/extra-data-keeper.ts'

interface CancelOptions {
  /** Writes the cancel; left out: the store. For operators it is one that also writes a line of the audit trail. */
  readonly through?: Pick<JobStore, 'cancel'>
  /** A job that runs by the time of the cancel is left alone. */
  readonly isOnlyQueued?: boolean
}

/** The job as it is afterwards. */
export type CancelJob = (accountId: string, jobId: string, options?: CancelOptions) => Promise<Job>

interface CancelDeps {
  readonly store: Pick<JobStore, 'cancel'>
  readonly bus: Pick<EventBus<never>, 'publishChanged'>
  readonly clock: Clock
  readonly extraData: Pick<ExtraDataKeeper, 'forget'>
  readonly observer?: JobObserver
}

export function createCancelJob(deps: CancelDeps): CancelJob {
  const { store, bus, clock, extraData } = deps
  const observer = deps.observer ?? silentObserver

  return async function cancelJob(accountId, jobId, { through = store, isOnlyQueued = false } = {}) {
    const result = isUuid(jobId) ? await through.cancel(accountId, jobId, clock.now(), isOnlyQueued) : NOT_FOUND
    if (result.outcome === 'not_found') throw new ServiceError('not_found', 'there is no job with this id')
    const { job } = result
    if (result.outcome === 'already_terminal' || result.outcome === 'left_running') return job
    if (result.outcome === 'canceled') {
      extraData.forget(jobId)
      observer.finished({ jobId, accountId, status: 'canceled', code: null, executionMs: null })
    }
    const move = result.outcome === 'canceled' ? 'dropped' : undefined
    bus.publishChanged({ jobId, accountId, version: job.version, ...(move && { move }) })
    return job
  }
}

const NOT_FOUND = { outcome: 'not_found' } as const
