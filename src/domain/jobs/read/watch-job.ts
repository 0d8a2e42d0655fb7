/** Watches one job: its snapshot, then every newer one in order, and its previews. Streams and sockets stand on this. */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { isUuid } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import { ServiceError } from '../../errors.ts'
import type { EventBus, JobLive } from '../../events/event-bus.ts'
import type { LiveEvent } from '../../events/live-event.ts'
import { createWatchHub, type WatchSource } from '../../events/watch-hub.ts'
import type { Job } from '../job.ts'
import { MAX_PREVIEW_BYTES } from '../run/run-notices.ts'
import { isTerminal } from '../transitions.ts'
import type { JobReader } from './job-reader.ts'

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

export interface Preview {
  readonly nodeId: string
  readonly contentType: string
  readonly bytes: Uint8Array
}

type PreviewListener = (preview: Preview) => void

interface Previews extends Disposable {
  newest(jobId: string): Preview | null
  /** Returns the end of the subscription. */
  listen(jobId: string, listener: PreviewListener): () => void
}

interface PreviewsDeps {
  readonly bus: Pick<EventBus<LiveEvent>, 'onLive'>
  readonly maxJobs?: number
}

/**
 * The newest preview of each running job, bounded, and the delivery of every preview to its watchers. How many of them a reader is
 * shown is decided where frames are made. Previews are not stored anywhere.
 */
export function createPreviews({ bus, maxJobs = 256 }: PreviewsDeps): Previews {
  const newest = new BoundedMap<string, Preview>(maxJobs)
  // For runs in this process, always: a watcher that comes later gets the newest at once.
  const stop = bus.onLive('published_here', keepNewest)

  function keepNewest({ jobId, event }: JobLive<LiveEvent>): void {
    const preview = toPreview(event)
    if (preview !== null) newest.set(jobId, preview)
    else if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') {
      newest.delete(jobId)
    }
  }

  return {
    newest: (jobId) => newest.get(jobId) ?? null,
    listen(jobId, listener) {
      // A preview that arrives while the subscription is made is a repetition of the newest one.
      let isListening = false
      const stop = bus.onLive({ jobId }, (notice) => {
        keepNewest(notice)
        const preview = isListening ? toPreview(notice.event) : null
        if (preview !== null) listener(preview)
      })
      isListening = true
      return stop
    },
    [Symbol.dispose]() {
      stop()
      newest.clear()
    },
  }
}

/** null: no preview, or a picture that is a result: it may be of any size, and would only fill memory here. */
function toPreview(event: LiveEvent): Preview | null {
  if (event.type !== 'preview' || event.bytes.byteLength > MAX_PREVIEW_BYTES) return null
  return { nodeId: event.displayNodeId, contentType: event.contentType, bytes: event.bytes }
}
