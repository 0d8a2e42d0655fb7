/** Watches one job: its snapshot, then every newer one in order, and its previews. Streams and sockets stand on this. */

import { isUuid } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import { ServiceError } from '../../errors.ts'
import type { EventBus } from '../../events/event-bus.ts'
import type { LiveEvent } from '../../events/live-event.ts'
import { createWatchHub } from '../../events/watch-hub.ts'
import type { WatchSource } from '../../events/watch-topic.ts'
import type { Job } from '../job.ts'
import { isTerminal } from '../transitions.ts'
import { createPreviews, type Preview } from './job-previews.ts'
import type { JobReader } from './job-reader.ts'

export type { Preview } from './job-previews.ts'

export interface JobWatcher {
  onSnapshot(job: Job): void
  onPreview(preview: Preview): void
  /** The job was removed; nothing follows. */
  onGone(): void
}

export interface JobWatch {
  readonly job: Job
  readonly preview: Preview | null
  stop(): void
}

/** Throws `not_found`. */
export type WatchJob = (accountId: string, jobId: string, watcher: JobWatcher) => Promise<JobWatch>

interface WatchJobDeps {
  readonly reader: Pick<JobReader, 'findSince'>
  readonly bus: Pick<EventBus<LiveEvent>, 'onChanged' | 'onLive' | 'onGap'>
  readonly log: Log
  /** The same for a waiting job, whose position changes without a notice. */
  readonly queuedFreshMs?: number
  /** After this long without a notice a live job is read again, in case a notice was lost. */
  readonly liveFreshMs?: number
  readonly tickMs?: number
}

interface JobKey {
  readonly accountId: string
  readonly jobId: string
}

interface JobWatching extends Disposable {
  readonly watchJob: WatchJob
  /** Jobs that somebody watches. */
  watchedCount(): number
}

export function createWatchJob(deps: WatchJobDeps): JobWatching {
  const hub = createWatchHub(createSource(deps), { log: deps.log, tickMs: deps.tickMs })
  const previews = createPreviews({ bus: deps.bus })
  const stops = [
    deps.bus.onChanged((notice) => hub.notice(notice, notice.version)),
    deps.bus.onGap(() => hub.noticeAll()),
  ]

  return {
    async watchJob(accountId, jobId, watcher) {
      const watch = isUuid(jobId) ? await hub.watch({ accountId, jobId }, watcher) : null
      if (watch === null) throw new ServiceError('not_found', 'there is no job with this id')
      // An ended job sends nothing more, so no subscription is needed.
      const hasEnded = isTerminal(watch.snapshot.status)
      const stopPreviews = hasEnded ? () => {} : previews.listen(jobId, (preview) => watcher.onPreview(preview))
      return {
        job: watch.snapshot,
        preview: hasEnded ? null : previews.newest(jobId),
        stop() {
          watch.stop()
          stopPreviews()
        },
      }
    },
    watchedCount: () => hub.topicCount(),
    [Symbol.dispose]() {
      for (const stop of stops) stop()
      previews[Symbol.dispose]()
      hub[Symbol.dispose]()
    },
  }
}

function createSource(deps: WatchJobDeps): WatchSource<JobKey, Job> {
  const { reader, queuedFreshMs = 1000, liveFreshMs = 5000 } = deps
  return {
    async read({ accountId, jobId }, version) {
      try {
        return await reader.findSince(accountId, jobId, version)
      } catch (error) {
        if (error instanceof ServiceError && error.refusal === 'not_found') return null
        throw error
      }
    },
    topicOf: ({ accountId, jobId }) => `${accountId}/${jobId}`,
    versionOf: (job) => job.version,
    isNews: (before, after) => before.queuePosition !== after.queuePosition,
    isFinal: (job) => isTerminal(job.status),
    freshMs(job) {
      if (isTerminal(job.status)) return null
      return job.status === 'queued' ? queuedFreshMs : liveFreshMs
    },
  }
}
