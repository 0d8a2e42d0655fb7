/**
 * What happens to the jobs of one account, for all its readers at once. `hello` begins the stream: from then on nothing is missed, so
 * whoever reads a list after it knows everything. A second `hello` says that something may have been missed (a slow reader, a lost
 * notice): lists are to be read again. The same job is told at most four times a second, as it is then.
 */
import type { Log } from '../../../../lib/log.ts'
import type { Ticker } from '../../../../lib/waiting/uptime.ts'
import { isStoreAway } from '../../../domain/errors.ts'
import type { EventBus, JobChanged } from '../../../domain/events/event-bus.ts'
import { type JobSummary, NO_FILTER, type SummaryStore } from '../../../domain/jobs/summaries/summary-store.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import type { EventStream } from '../../kit/streams/event-stream.ts'
import { encodeFrame } from '../../kit/streams/sse.ts'
import { toSummaryView } from '../views/summary-view.ts'
import type { SharedSource } from './console-streams.ts'

interface FeedOptions {
  readonly accountId: string
  readonly bus: Pick<EventBus<never>, 'hasOthers' | 'onChanged' | 'onDirectory' | 'onGap'>
  readonly summaries: Pick<SummaryStore, 'search' | 'findMany' | 'count'>
  /** The id of the page's build; null: there is none. */
  readonly buildId: () => string | null
  readonly now: () => Date
  readonly ticker: Ticker
  readonly log: Log
}

const PACE_MS = 250
const COUNTS_MS = 1000
// Where other processes run jobs, the finest of their notices do not come here.
const RE_READ_MS = 1000
const MAX_LIVE = 100
// A burst of changes is read in parts; the rest follows at the next tick.
const MAX_READ = 200

export function createAccountFeed(
  options: FeedOptions,
): Omit<SharedSource, 'left'> & { left(stream: EventStream): void } {
  const { accountId, bus, summaries, buildId, now, ticker, log } = options
  const streams = new Set<EventStream>()
  /** Changed and not told yet. */
  const dirty = new Set<string>()
  /** What was told last of those that can still change. */
  const live = new Map<string, JobSummary>()
  let counts: unknown = null
  let areCountsDue = false
  let countedAt = Number.NEGATIVE_INFINITY
  let toldAt = Number.NEGATIVE_INFINITY
  let readLiveAt = ticker.now()
  let isEngineNews = false
  let isReading = false
  let build = buildId()

  const stops = [
    bus.onChanged((notice) => {
      if (notice.accountId === accountId) take(notice)
    }),
    bus.onDirectory(({ directory }) => {
      if (directory === 'engines') isEngineNews = true
    }),
    bus.onGap(() => void begin().catch(report)),
  ]

  function take({ jobId, move }: JobChanged): void {
    dirty.add(jobId)
    if (move !== undefined) areCountsDue = true
    // The first of several changes is told at once.
    if (ticker.now() - toldAt >= PACE_MS) tell()
  }

  async function begin(): Promise<void> {
    const query = { filter: { ...NO_FILTER, statuses: LIVE }, order: 'newest', limit: MAX_LIVE, after: null } as const
    const [page, counted] = await Promise.all([
      summaries.search(accountId, { ...query, now: now() }),
      summaries.count(accountId, NO_FILTER, now()),
    ])
    counts = counted
    live.clear()
    for (const summary of page.summaries) live.set(summary.id, summary)
    for (const stream of streams) greet(stream)
  }

  function greet(stream: EventStream): void {
    const hello = encodeFrame('hello', JSON.stringify({ build, now: now().toISOString(), counts }))
    stream.send(Buffer.concat([hello, ...[...live.values()].map(toJobFrame)]))
  }

  function spread(frames: readonly Buffer[]): void {
    if (frames.length === 0) return
    const bytes = Buffer.concat(frames)
    for (const stream of streams) stream.send(bytes)
  }

  function tell(): void {
    if (isReading || dirty.size === 0) return
    isReading = true
    toldAt = ticker.now()
    const jobIds = [...dirty].slice(0, MAX_READ)
    for (const jobId of jobIds) dirty.delete(jobId)
    readJobs(jobIds)
      .catch((error) => {
        for (const jobId of jobIds) dirty.add(jobId)
        report(error)
      })
      .finally(() => {
        isReading = false
      })
  }

  async function readJobs(jobIds: readonly string[]): Promise<void> {
    const found = new Map((await summaries.findMany(accountId, jobIds, now())).map((summary) => [summary.id, summary]))
    const frames = jobIds.flatMap((jobId) => {
      const summary = found.get(jobId)
      if (summary === undefined) {
        live.delete(jobId)
        return [encodeFrame('gone', JSON.stringify({ id: jobId }))]
      }
      const before = live.get(jobId)
      if (before !== undefined && before.version >= summary.version && !hasMoved(before, summary)) return []
      if (isTerminal(summary.status)) live.delete(jobId)
      else if (live.has(jobId) || live.size < MAX_LIVE) live.set(jobId, summary)
      return [toJobFrame(summary)]
    })
    spread(frames)
  }

  async function tellCounts(): Promise<void> {
    countedAt = ticker.now()
    areCountsDue = false
    counts = await summaries.count(accountId, NO_FILTER, now())
    spread([encodeFrame('counts', JSON.stringify(counts))])
  }

  /** An outage is reported by the store itself; what could not be read is read at the next tick. */
  function report(error: unknown): void {
    log[isStoreAway(error) ? 'debug' : 'warn'](
      { err: error },
      'jobs of a console could not be read; they are tried again',
    )
  }

  /** Positions in the queue change without a notice, and progress in other processes without one that comes here. */
  function reRead(nowMs: number): void {
    if (nowMs - readLiveAt < RE_READ_MS) return
    readLiveAt = nowMs
    for (const [jobId, { status }] of live) if (status === 'queued' || bus.hasOthers) dirty.add(jobId)
  }

  return {
    ready: begin(),
    join(stream) {
      streams.add(stream)
      greet(stream)
    },
    resync: greet,
    left: (stream) => void streams.delete(stream),
    tick() {
      const nowMs = ticker.now()
      reRead(nowMs)
      if (nowMs - toldAt >= PACE_MS) tell()
      if (areCountsDue && nowMs - countedAt >= COUNTS_MS) tellCounts().catch(report)
      if (isEngineNews) spread([encodeFrame('engine', JSON.stringify({ now: now().toISOString() }))])
      isEngineNews = false
      if (build === buildId()) return
      build = buildId()
      spread([encodeFrame('notice', JSON.stringify({ kind: 'build', build }))])
    },
    close() {
      for (const stop of stops) stop()
    },
  }
}

const LIVE = ['queued', 'running', 'canceling'] as const

function hasMoved(before: JobSummary, after: JobSummary): boolean {
  return before.queuePosition !== after.queuePosition
}

function toJobFrame(summary: JobSummary): Buffer {
  return encodeFrame('job', JSON.stringify(toSummaryView(summary)))
}
