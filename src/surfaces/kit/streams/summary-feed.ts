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

export class SummaryFeed implements SharedSource {
  readonly ready: Promise<void>
  readonly #deps: FeedOptions
  readonly #streams = new Set<EventStream>()
  /** Changed and not told yet. */
  readonly #dirty = new Set<string>()
  /** What was sent last of the jobs that can still change. */
  readonly #live = new Map<string, JobSummary>()
  #counts: unknown = null
  #areCountsDue = false
  #countedAt = Number.NEGATIVE_INFINITY
  #readAt = Number.NEGATIVE_INFINITY
  /** When jobs were told last, as far as it matters for their pace. */
  readonly #toldAt = new Map<string, number>()
  #readLiveAt: number
  #isEngineNews = false
  #isReading = false
  #isBeginDue = false
  #isBeginning = false
  #beganAt = Number.NEGATIVE_INFINITY
  /** Jobs that changed while the first list is being read: what the list says of them may be older than what was already sent. */
  readonly #changedMeanwhile = new Set<string>()
  /** Whether more wait than are followed, and whether some that were followed wait no more. */
  #hasMoreWaiting = false
  #isHeadShort = false
  #build: string | null
  readonly #stops: readonly (() => void)[]

  constructor(deps: FeedOptions) {
    this.#deps = deps
    this.#readLiveAt = deps.ticker.now()
    this.#build = deps.buildId()
    this.#stops = [
      deps.bus.onChanged((notice) => {
        if (deps.scope === null || notice.accountId === deps.scope) this.#take(notice)
      }),
      deps.bus.onDirectory(({ directory }) => {
        if (directory === 'engines') this.#isEngineNews = true
      }),
      deps.bus.onGap(() => {
        this.#isBeginDue = true
        this.#beginAgain()
      }),
    ]
    this.ready = this.#begin()
  }

  join(stream: EventStream): void {
    this.#streams.add(stream)
    this.#greet(stream)
  }

  resync(stream: EventStream): void {
    this.#greet(stream)
  }

  left(stream: EventStream): void {
    this.#streams.delete(stream)
  }

  tick(): void {
    const { ticker, buildId } = this.#deps
    const nowMs = ticker.now()
    this.#beginAgain()
    this.#reRead(nowMs)
    for (const [jobId, at] of this.#toldAt) if (nowMs - at >= PACE_MS) this.#toldAt.delete(jobId)
    this.#tell()
    if (this.#areCountsDue && nowMs - this.#countedAt >= COUNTS_MS)
      this.#tellCounts().catch((error) => this.#report(error))
    if (this.#isEngineNews)
      this.#spread([encodeFrame('engine', JSON.stringify({ now: this.#deps.now().toISOString() }))])
    this.#isEngineNews = false
    if (this.#build === buildId()) return
    this.#build = buildId()
    this.#spread([encodeFrame('notice', JSON.stringify({ kind: 'build', build: this.#build }))])
  }

  close(): void {
    for (const stop of this.#stops) stop()
  }

  #take({ jobId, move }: JobChanged): void {
    this.#dirty.add(jobId)
    if (this.#isBeginning) this.#changedMeanwhile.add(jobId)
    if (move !== undefined) this.#areCountsDue = true
    // The first of several changes is sent at once.
    if (this.#deps.ticker.now() - this.#readAt >= READ_MS) this.#tell()
  }

  #readLive(statuses: readonly JobStatus[], order: SummaryQuery['order'], limit: number): Promise<SummaryPage> {
    return this.#deps.summaries.search(this.#deps.scope, {
      filter: { ...NO_FILTER, statuses },
      order,
      limit,
      after: null,
      now: this.#deps.now(),
    })
  }

  async #begin(): Promise<void> {
    const { ticker, summaries, scope, now } = this.#deps
    this.#isBeginning = true
    this.#isBeginDue = false
    this.#beganAt = ticker.now()
    this.#changedMeanwhile.clear()
    try {
      const [held, head, counted] = await Promise.all([
        this.#readLive(HELD, 'newest', MAX_HELD),
        this.#readLive(['queued'], 'oldest', MAX_HEAD),
        summaries.count(scope, NO_FILTER, now()),
      ])
      this.#counts = counted
      this.#hasMoreWaiting = head.next !== null
      this.#isHeadShort = false
      const known = new Map(this.#live)
      this.#live.clear()
      for (const summary of [...held.summaries, ...head.summaries]) {
        const before = known.get(summary.id)
        this.#live.set(summary.id, before !== undefined && before.version > summary.version ? before : summary)
      }
      for (const jobId of this.#changedMeanwhile) this.#dirty.add(jobId)
      this.#areCountsDue ||= this.#changedMeanwhile.size > 0
    } catch (error) {
      this.#isBeginDue = true
      throw error
    } finally {
      this.#isBeginning = false
    }
    for (const stream of this.#streams) this.#greet(stream)
  }

  /** After a gap. What fails is tried again by the tick, at most once a second. */
  #beginAgain(): void {
    if (this.#isBeginDue && !this.#isBeginning && this.#deps.ticker.now() - this.#beganAt >= RE_READ_MS)
      this.#begin().catch((error) => this.#report(error))
  }

  #greet(stream: EventStream): void {
    const hello = encodeFrame(
      'hello',
      JSON.stringify({ build: this.#build, now: this.#deps.now().toISOString(), counts: this.#counts }),
    )
    stream.send(Buffer.concat([hello, ...[...this.#live.values()].map((summary) => this.#toJobFrame(summary))]))
  }

  #toJobFrame(summary: JobSummary): Buffer {
    return encodeFrame('job', JSON.stringify(this.#deps.toView(summary)))
  }

  #spread(frames: readonly Buffer[]): void {
    if (frames.length === 0) return
    const bytes = Buffer.concat(frames)
    for (const stream of this.#streams) stream.send(bytes)
  }

  #tell(): void {
    const nowMs = this.#deps.ticker.now()
    const isDue = (jobId: string) => nowMs - (this.#toldAt.get(jobId) ?? Number.NEGATIVE_INFINITY) >= PACE_MS
    const jobIds = this.#isReading ? [] : this.#dirty.values().filter(isDue).take(MAX_READ).toArray()
    if (jobIds.length === 0) return
    this.#isReading = true
    this.#readAt = nowMs
    for (const jobId of jobIds) {
      this.#dirty.delete(jobId)
      this.#toldAt.set(jobId, nowMs)
    }
    this.#readJobs(jobIds)
      .catch((error) => {
        for (const jobId of jobIds) this.#dirty.add(jobId)
        this.#report(error)
      })
      .finally(() => {
        this.#isReading = false
      })
  }

  async #readJobs(jobIds: readonly string[]): Promise<void> {
    const { summaries, scope, now } = this.#deps
    const found = new Map((await summaries.findMany(scope, jobIds, now())).map((summary) => [summary.id, summary]))
    const frames = jobIds.flatMap((jobId) => {
      const summary = found.get(jobId)
      if (summary === undefined) {
        this.#leave(jobId)
        return [encodeFrame('gone', JSON.stringify({ id: jobId }))]
      }
      const before = this.#live.get(jobId)
      if (before !== undefined && before.version >= summary.version && !hasMoved(before, summary)) return []
      if (before?.status !== summary.status) this.#leave(jobId)
      if (this.#mayFollow(summary)) this.#live.set(jobId, summary)
      return [this.#toJobFrame(summary)]
    })
    this.#spread(frames)
  }

  #leave(jobId: string): void {
    this.#isHeadShort ||= this.#live.get(jobId)?.status === 'queued'
    this.#live.delete(jobId)
  }

  #mayFollow({ id, status }: JobSummary): boolean {
    if (isTerminal(status)) return false
    if (this.#live.has(id)) return true
    const isWaiting = status === 'queued'
    const followed = this.#live.values().filter((other) => (other.status === 'queued') === isWaiting)
    return [...followed].length < (isWaiting ? MAX_HEAD : MAX_HELD)
  }

  /** Those that come next, once others have begun to run. */
  async #fillHead(): Promise<void> {
    this.#isHeadShort = false
    const head = await this.#readLive(['queued'], 'oldest', MAX_HEAD)
    this.#hasMoreWaiting = head.next !== null
    for (const { id } of head.summaries) if (!this.#live.has(id)) this.#dirty.add(id)
  }

  async #tellCounts(): Promise<void> {
    const { ticker, summaries, scope, now } = this.#deps
    this.#countedAt = ticker.now()
    this.#areCountsDue = false
    try {
      this.#counts = await summaries.count(scope, NO_FILTER, now())
    } catch (error) {
      this.#areCountsDue = true
      throw error
    }
    this.#spread([encodeFrame('counts', JSON.stringify(this.#counts))])
  }

  /** An outage is reported by the store itself; what could not be read is read at the next tick. */
  #report(error: unknown): void {
    this.#deps.log[isStoreAway(error) ? 'debug' : 'warn'](
      { err: error },
      'jobs of a console could not be read; they are tried again',
    )
  }

  /** Positions in the queue change without a notice, and progress in other processes without one that comes here. */
  #reRead(nowMs: number): void {
    if (nowMs - this.#readLiveAt < RE_READ_MS) return
    this.#readLiveAt = nowMs
    for (const [jobId, { status }] of this.#live)
      if (status === 'queued' || this.#deps.bus.hasOthers) this.#dirty.add(jobId)
    if (!this.#isHeadShort || !this.#hasMoreWaiting) return
    this.#fillHead().catch((error) => {
      this.#isHeadShort = true
      this.#report(error)
    })
  }
}

const HELD = ['running', 'canceling'] as const

function hasMoved(before: JobSummary, after: JobSummary): boolean {
  return before.queuePosition !== after.queuePosition
}
