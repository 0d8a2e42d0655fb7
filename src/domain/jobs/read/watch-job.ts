/** Watches one job: its snapshot, then every newer one in order, and its previews. Streams and sockets stand on this. Also what running jobs show beside it. */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import { isUuid } from '../../../../lib/ids.ts'
import type { Log } from '../../../../lib/log.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import { ServiceError } from '../../errors.ts'
import type { EventBus, JobLive } from '../../events/event-bus.ts'
import type { LiveEvent } from '../../events/live-event.ts'
import { createWatchHub, type WatchSource } from '../../events/watch-hub.ts'
import type { Job } from '../job.ts'
import type { LogLine } from '../run/record/log-lines.ts'
import { createNodeSpans, type NodeSpan, type NodeSpans } from '../run/record/run-record.ts'
import { MAX_PREVIEW_BYTES } from '../run/run-steps.ts'
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

// How far the nodes of running jobs are and what they print, as it is told live. Nothing of it is stored: when a run ends, what it
// showed is with the job. Of runs in this process everything is known from their beginning; of runs elsewhere, what their process
// tells whoever comes later.

export interface LiveRun {
  /** Another one for another run of the same job. */
  readonly key: symbol
  /** The same list until one of them changes. */
  readonly nodes: readonly NodeSpan[]
  readonly isCut: boolean
  /** The newest lines. */
  readonly lines: readonly LogLine[]
}

export interface LiveRuns extends Disposable {
  /** null: nothing is known of a run of this job. */
  read(jobId: string): Promise<LiveRun | null>
  /** What is known at any time from now on. */
  follow(jobId: string): FollowedRun
}

interface FollowedRun {
  now(): LiveRun
  stop(): void
}

interface LiveRunsDeps {
  readonly bus: Pick<EventBus<LiveEvent>, 'hasOthers' | 'onLive'>
  readonly clock: Clock
  readonly maxJobs?: number
  /** How long another process has to send the earlier events of a run. */
  readonly patienceMs?: number
}

interface RunSoFar {
  take(event: LiveEvent): void
  now(): LiveRun
}

const MAX_LINES = 2000
const MAX_LINE_LENGTH = 4000
// Of all lines of a run together.
const MAX_LENGTH = 128 * 1024

function createRunSoFar(clock: Clock): RunSoFar {
  const spans: NodeSpans = createNodeSpans()
  const key = Symbol('run')
  const lines: LogLine[] = []
  const running = new Set<string>()
  let count = 0
  let length = 0
  let open = ''

  function print(text: string, at: Date): void {
    const nodeId = [...running].at(-1) ?? null
    const parts = (open + text).split('\n')
    // Nodes that have not ended yet are sent with their end.
    open = (parts.pop() ?? '').slice(0, MAX_LINE_LENGTH)
    for (const part of parts) {
      const line = part.slice(0, MAX_LINE_LENGTH)
      lines.push({ n: count, at, nodeId, text: line })
      count += 1
      length += line.length
    }
    // Dropped at twice the bounds, so that a line costs the same whatever came before it.
    if (lines.length > 2 * MAX_LINES || length > 2 * MAX_LENGTH) drop()
  }

  function drop(): void {
    let excess = Math.max(0, lines.length - MAX_LINES)
    for (const { text } of lines.slice(0, excess)) length -= text.length
    for (; length > MAX_LENGTH; excess += 1) length -= lines[excess]?.text.length ?? 0
    lines.splice(0, excess)
  }

  return {
    take(event) {
      const at = clock.now()
      spans.take(event, at.getTime())
      if (event.type === 'node_started') running.add(event.displayNodeId)
      else if (event.type === 'node_finished') running.delete(event.displayNodeId)
      else if (event.type === 'log') print(event.text, at)
      else if (event.type === 'node_blocked')
        print(`[${event.displayNodeId}] Execution Blocked: ${event.message}\n`, at)
    },
    now: () => ({ key, nodes: spans.list(), isCut: spans.isCut(), lines: lines.slice(-MAX_LINES) }),
  }
}

export function createLiveRuns({ bus, clock, maxJobs = 256, patienceMs = 250 }: LiveRunsDeps): LiveRuns {
  const runs = new BoundedMap<string, RunSoFar>(maxJobs)
  const stop = bus.onLive('published_here', ({ jobId, event }: JobLive<LiveEvent>) => {
    if (event.type === 'started') runs.set(jobId, createRunSoFar(clock))
    if (event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted') runs.delete(jobId)
    else runs.get(jobId)?.take(event)
  })

  return {
    async read(jobId) {
      const known = runs.get(jobId)
      if (known !== undefined) return known.now()
      if (!bus.hasOthers) return null
      let elsewhere = createRunSoFar(clock)
      const leave = bus.onLive({ jobId }, ({ event }) => {
        if (event.type === 'started') elsewhere = createRunSoFar(clock)
        elsewhere.take(event)
      })
      await sleep(patienceMs)
      leave()
      const so = elsewhere.now()
      return so.nodes.length + so.lines.length === 0 ? null : so
    },
    follow(jobId) {
      // Another process sends the earlier events of its run; a run that is still to begin may begin here.
      let heard = createRunSoFar(clock)
      // A run that ends here is forgotten, but its last events are still to be sent.
      let here = runs.get(jobId)
      const stop = bus.onLive({ jobId }, ({ event }) => {
        if (event.type === 'started') {
          // The next attempt, wherever it runs.
          heard = createRunSoFar(clock)
          here = undefined
        }
        heard.take(event)
      })
      return {
        now() {
          here = runs.get(jobId) ?? here
          return (here ?? heard).now()
        },
        stop,
      }
    },
    [Symbol.dispose]() {
      stop()
      runs.clear()
    },
  }
}
