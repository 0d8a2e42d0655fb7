/** Publishes the notices for jobs that a sweep or a release has moved, and lets go of the credentials of those that ended. */
import type { EventBus } from '../../events/event-bus.ts'
import type { TouchedJob } from '../job-store.ts'
import type { JobObserver } from '../observer.ts'
import type { ExtraDataKeeper } from '../submit/extra-data-keeper.ts'
import { isTerminal } from '../transitions.ts'

export interface AnnounceDeps {
  /** Left out: the code that made the change announces it. */
  readonly bus: Partial<Pick<EventBus<never>, 'publishChanged' | 'publishWork'>>
  readonly extraData: Pick<ExtraDataKeeper, 'forget'>
  readonly observer: JobObserver
}

/** `failureCode` is the error code of those that became `failed`. */
export function announceTouched(
  { bus, extraData, observer }: AnnounceDeps,
  touched: readonly TouchedJob[],
  failureCode: string | null,
): void {
  for (const { jobId, accountId, version, status } of touched) {
    if (isTerminal(status)) {
      extraData.forget(jobId)
      observer.finished({
        jobId,
        accountId,
        status,
        code: status === 'failed' ? failureCode : null,
        executionMs: null,
      })
    }
    bus.publishChanged?.({ jobId, accountId, version, move: isTerminal(status) ? 'ended' : 'returned' })
  }
  // A requeued job can be claimed, and an ended one has freed its account's capacity to claim another.
  if (touched.length > 0) bus.publishWork?.()
}
