/**
 * What happens to the jobs of one account, or of all, for all readers at once. `hello` begins the stream: from then on nothing is missed, so
 * whoever reads a list after it knows everything. A second `hello` says that something may have been missed (a slow reader, a lost
 * notice): lists are to be read again. Each job is sent at most four times a second, in its state at that moment.
 */

import type { Ticker } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { isStoreAway } from '../../../domain/errors.ts'
import type { EventBus, JobChanged } from '../../../domain/events/event-bus.ts'
import {
  type JobSummary,
  NO_FILTER,
  type SummaryPage,
  type SummaryQuery,
  type SummaryScope,
  type SummaryStore,
} from '../../../domain/jobs/summaries/summary-store.ts'
import { isTerminal, type JobStatus } from '../../../domain/jobs/transitions.ts'
import type { SharedSource } from './shared-streams.ts'
import { type EventStream, encodeFrame } from './sse.ts'

interface FeedOptions {
  readonly scope: SummaryScope
  readonly bus: Pick<EventBus<never>, 'hasOthers' | 'onChanged' | 'onDirectory' | 'onGap'>
  readonly summaries: Pick<SummaryStore, 'search' | 'findMany' | 'count'>
  /** The id of the page's build; null: there is none, or no reader asks. */
  readonly buildId: () => string | null
  readonly now: () => Date
  readonly ticker: Ticker
  readonly log: Log
  /** The job as readers get it. */
  readonly toView: (summary: JobSummary) => object
}

// Of one job, and of all that is read for the readers.
const PACE_MS = 250
const READ_MS = 100
const COUNTS_MS = 1000
// Where other processes run jobs, the finest of their notices do not come here.
const RE_READ_MS = 1000
// Of those that run, and of those that come next.
const MAX_HELD = 80
const MAX_HEAD = 20
// A burst of changes is read in parts; the rest follows at the next tick.
const MAX_READ = 200

export function createSummaryFeed(
  options: FeedOptions,
): Omit<SharedSource, 'left'> & { left(stream: EventStream): void } {
  const { scope, bus, summaries, buildId, now, ticker, log } = options
  const toJobFrame = (summary: JobSummary) => encodeFrame('job', JSON.stringify(options.toView(summary)))
  const streams = new Set<EventStream>()
  /** Changed and not told yet. */
  const dirty = new Set<string>()
  /** What was sent last of the jobs that can still change. */
  const live = new Map<string, JobSummary>()
  let counts: unknown = null
  let areCountsDue = false
  let countedAt = Number.NEGATIVE_INFINITY
  let readAt = Number.NEGATIVE_INFINITY
  /** When jobs were told last, as far as it matters for their pace. */
  const toldAt = new Map<string, number>()
  let readLiveAt = ticker.now()
  let isEngineNews = false
  let isReading = false
  let isBeginDue = false
  let isBeginning = false
  let beganAt = Number.NEGATIVE_INFINITY
  /** Jobs that changed while the first list is being read: what the list says of them may be older than what was already sent. */
  const changedMeanwhile = new Set<string>()
  /** Whether more wait than are followed, and whether some that were followed wait no more. */
  let hasMoreWaiting = false
  let isHeadShort = false
  let build = buildId()

  const stops = [
    bus.onChanged((notice) => {
      if (scope === null || notice.accountId === scope) take(notice)
    }),
    bus.onDirectory(({ directory }) => {
      if (directory === 'engines') isEngineNews = true
    }),
    bus.onGap(() => {
      isBeginDue = true
      beginAgain()
    }),
  ]

  function take({ jobId, move }: JobChanged): void {
    dirty.add(jobId)
    if (isBeginning) changedMeanwhile.add(jobId)
    if (move !== undefined) areCountsDue = true
    // The first of several changes is sent at once.
    if (ticker.now() - readAt >= READ_MS) tell()
  }

  function readLive(statuses: readonly JobStatus[], order: SummaryQuery['order'], limit: number): Promise<SummaryPage> {
    return summaries.search(scope, { filter: { ...NO_FILTER, statuses }, order, limit, after: null, now: now() })
  }

  async function begin(): Promise<void> {
    isBeginning = true
    isBeginDue = false
    beganAt = ticker.now()
    changedMeanwhile.clear()
    try {
      const [held, head, counted] = await Promise.all([
        readLive(HELD, 'newest', MAX_HELD),
        readLive(['queued'], 'oldest', MAX_HEAD),
        summaries.count(scope, NO_FILTER, now()),
      ])
      counts = counted
      hasMoreWaiting = head.next !== null
      isHeadShort = false
      const known = new Map(live)
      live.clear()
      for (const summary of [...held.summaries, ...head.summaries]) {
        const before = known.get(summary.id)
        live.set(summary.id, before !== undefined && before.version > summary.version ? before : summary)
      }
      for (const jobId of changedMeanwhile) dirty.add(jobId)
      areCountsDue ||= changedMeanwhile.size > 0
    } catch (error) {
      isBeginDue = true
      throw error
    } finally {
      isBeginning = false
    }
    for (const stream of streams) greet(stream)
  }

  /** After a gap. What fails is tried again by the tick, at most once a second. */
  function beginAgain(): void {
    if (isBeginDue && !isBeginning && ticker.now() - beganAt >= RE_READ_MS) begin().catch(report)
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
    const nowMs = ticker.now()
    const isDue = (jobId: string) => nowMs - (toldAt.get(jobId) ?? Number.NEGATIVE_INFINITY) >= PACE_MS
    const jobIds = isReading ? [] : dirty.values().filter(isDue).take(MAX_READ).toArray()
    if (jobIds.length === 0) return
    isReading = true
    readAt = nowMs
    for (const jobId of jobIds) {
      dirty.delete(jobId)
      toldAt.set(jobId, nowMs)
    }
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
    const found = new Map((await summaries.findMany(scope, jobIds, now())).map((summary) => [summary.id, summary]))
    const frames = jobIds.flatMap((jobId) => {
      const summary = found.get(jobId)
      if (summary === undefined) {
        leave(jobId)
        return [encodeFrame('gone', JSON.stringify({ id: jobId }))]
      }
      const before = live.get(jobId)
      if (before !== undefined && before.version >= summary.version && !hasMoved(before, summary)) return []
      if (before?.status !== summary.status) leave(jobId)
      if (mayFollow(summary)) live.set(jobId, summary)
      return [toJobFrame(summary)]
    })
    spread(frames)
  }

  function leave(jobId: string): void {
    isHeadShort ||= live.get(jobId)?.status === 'queued'
    live.delete(jobId)
  }

  function mayFollow({ id, status }: JobSummary): boolean {
    if (isTerminal(status)) return false
    if (live.has(id)) return true
    const isWaiting = status === 'queued'
    const followed = live.values().filter((other) => (other.status === 'queued') === isWaiting)
    return [...followed].length < (isWaiting ? MAX_HEAD : MAX_HELD)
  }

  /** Those that come next, once others have begun to run. */
  async function fillHead(): Promise<void> {
    isHeadShort = false
    const head = await readLive(['queued'], 'oldest', MAX_HEAD)
    hasMoreWaiting = head.next !== null
    for (const { id } of head.summaries) if (!live.has(id)) dirty.add(id)
  }

  async function tellCounts(): Promise<void> {
    countedAt = ticker.now()
    areCountsDue = false
    try {
      counts = await summaries.count(scope, NO_FILTER, now())
    } catch (error) {
      areCountsDue = true
      throw error
    }
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
    if (!isHeadShort || !hasMoreWaiting) return
    fillHead().catch((error) => {
      isHeadShort = true
      report(error)
    })
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
      beginAgain()
      reRead(nowMs)
      for (const [jobId, at] of toldAt) if (nowMs - at >= PACE_MS) toldAt.delete(jobId)
      tell()
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

const HELD = ['running', 'canceling'] as const

function hasMoved(before: JobSummary, after: JobSummary): boolean {
  return before.queuePosition !== after.queuePosition
}
