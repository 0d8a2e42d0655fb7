/**
 * Opens event streams: one domain watch per job and link base, shared by all its readers. The limit is checked before the job is
 * looked up, so that a refusal tells nothing about the job.
 */
import type { ServerResponse } from 'node:http'
import type { Ticker } from '../../../../lib/clock.ts'
import type { Turns } from '../../../../lib/waiting/turns.ts'
import type { Caller } from '../../../domain/accounts/caller.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { noSuchJob } from '../../../domain/jobs/read/job-reader.ts'
import type { JobWatcher, Preview, WatchJob } from '../../../domain/jobs/read/watch-job.ts'
import { type SharedSource, SharedStreams, type StreamsOptions } from '../../kit/streams/shared-streams.ts'
import { type EventStream, joinSmall } from '../../kit/streams/sse.ts'
import { isReachable, type JobReach } from '../jobs-operation.ts'
import type { ContentLinks, LinkBase, ViewBase } from '../views/job-view.ts'
import { JobFrames } from './job-frames.ts'

interface HubOptions extends StreamsOptions {
  readonly watchJob: WatchJob
  readonly contentLinks: ContentLinks
  readonly ticker: Ticker
  readonly turns: Turns
}

interface StreamRequest {
  readonly caller: Caller
  readonly reach: JobReach
  readonly jobId: string
  readonly base: LinkBase
  /** name, value, name, value. */
  readonly headers: readonly string[]
}

export class EventHub {
  readonly #options: HubOptions
  readonly #streams: SharedStreams

  constructor(options: HubOptions) {
    this.#options = options
    this.#streams = new SharedStreams(options)
  }

  /** Takes the response over and streams until the job ends. Throws too_many_streams or not_found before the first byte. */
  open(response: ServerResponse, { caller, headers, reach, jobId, base }: StreamRequest): Promise<void> {
    const { origin, mountPrefix } = base
    const { watchJob, contentLinks, ticker, turns } = this.#options
    return this.#streams.open(response, {
      caller,
      headers,
      key: `${reach.accountId} ${jobId} ${reach.pool ?? ''} ${origin}${mountPrefix}`,
      make: () =>
        new EventChannel({ reach, jobId, watchJob, ticker, turns, base: { origin, mountPrefix, contentLinks } }),
    })
  }

  openStreams(): number {
    return this.#streams.openStreams()
  }

  /** Ends every stream with a closing comment; new ones are refused. */
  close(): void {
    this.#streams.close()
  }
}

interface ChannelOptions extends Pick<HubOptions, 'watchJob' | 'ticker' | 'turns'> {
  readonly reach: JobReach
  readonly jobId: string
  readonly base: ViewBase
}

/**
 * All streams of one job that share a link base. Every frame is made once and given to every reader; a reader that comes
 * later, or falls behind, gets the present state first and then the same frames. What the frames say is job-frames.ts.
 */
class EventChannel implements SharedSource, JobWatcher {
  readonly ready: Promise<void>
  readonly #options: ChannelOptions
  readonly #frames: JobFrames
  readonly #streams = new Set<EventStream>()
  #wait: { readonly untilMs: number; stop(): void } | null = null
  #stopWatch: (() => void) | null = null
  #isClosed = false

  constructor(options: ChannelOptions) {
    this.#options = options
    this.#frames = new JobFrames(options.base, options.ticker.now)
    this.ready = this.#begin()
  }

  async #begin(): Promise<void> {
    const { reach, jobId, watchJob, turns } = this.#options
    const { job, preview, stop } = await watchJob(reach.accountId, jobId, this)
    if (this.#isClosed) return stop()
    if (!isReachable(reach, job)) {
      stop()
      throw noSuchJob()
    }
    this.#stopWatch = stop
    if (job.outputs.length > 0) await turns.run(this.#frames.prepare(job))
    if (preview !== null) this.#frames.offerPreview(preview)
    this.#tell(this.#frames.take(job))
  }

  join(stream: EventStream): void {
    this.#streams.add(stream)
    this.resync(stream)
  }

  resync(stream: EventStream): void {
    const pieces = joinSmall(this.#frames.present(stream.delivered))
    if (this.#frames.hasEnded()) stream.end(...pieces)
    else if (stream.send(...pieces)) stream.delivered = this.#frames.outputFrameCount()
  }

  left(stream: EventStream): void {
    this.#streams.delete(stream)
  }

  close(): void {
    this.#isClosed = true
    this.#wait?.stop()
    this.#stopWatch?.()
  }

  onSnapshot(job: Job): void {
    this.#tell(this.#frames.take(job))
  }

  onPreview(preview: Preview): void {
    this.#frames.offerPreview(preview)
    this.#tell([])
  }

  onGone(): void {
    this.#tell(this.#frames.takeGone())
  }

  #spread(news: readonly Buffer[]): void {
    if (news.length === 0 || this.#streams.size === 0) return
    const pieces = joinSmall(news)
    const hasEnded = this.#frames.hasEnded()
    for (const stream of this.#streams) {
      // A reader that is behind gets all that it missed when its socket has drained.
      if (hasEnded && !stream.isBehind) stream.end(...pieces)
      else if (stream.send(...pieces)) stream.delivered = this.#frames.outputFrameCount()
    }
  }

  /** What keeps the pace by waiting leaves when its time has come, and not when somebody looks: it would come later and later. */
  #flush(): void {
    this.#spread(this.#frames.due())
    const dueMs = this.#frames.dueInMs()
    if (dueMs === null) return
    const untilMs = this.#options.ticker.now() + dueMs
    if (this.#wait !== null && this.#wait.untilMs <= untilMs) return
    this.#wait?.stop()
    const stop = this.#options.ticker.after(Math.ceil(dueMs), () => {
      this.#wait = null
      this.#flush()
    })
    this.#wait = { untilMs, stop }
  }

  #tell(news: readonly Buffer[]): void {
    this.#spread(news)
    this.#flush()
  }
}
