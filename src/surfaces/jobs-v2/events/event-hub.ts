/**
 * Opens event streams: one domain watch per job and link base, shared by all its readers, a bound per account, and one timer
 * that looks after all of them. The limit is checked before the job is looked up, so that a refusal tells nothing
 * about the job. A stream counts against the limit until its socket closes, however that comes about.
 */
import type { ServerResponse } from 'node:http'
import type { Ticker } from '../../../../lib/clock.ts'
import type { Turns, Work } from '../../../../lib/waiting/turns.ts'
import type { Caller, IsWelcome } from '../../../domain/accounts/caller.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { noSuchJob } from '../../../domain/jobs/read/job-reader.ts'
import type { JobWatcher, Preview, WatchJob } from '../../../domain/jobs/read/watch-job.ts'
import { type AccountConnections, tooManyStreams } from '../../kit/connections/account-connections.ts'
import { EventStream, encodeStreamHead, joinSmall, type StreamSource, takeSocket } from '../../kit/streams/sse.ts'
import { isReachable, type JobReach } from '../jobs-operation.ts'
import type { ContentLinks, LinkBase, ViewBase } from '../views/job-view.ts'
import { createJobFrames } from './job-frames.ts'

interface HubOptions {
  readonly watchJob: WatchJob
  readonly accountConnections: AccountConnections
  readonly isWelcome: IsWelcome
  /** Calls the listener when the answer may have changed. */
  readonly onCredentialsChanged: (listener: () => void) => () => void
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

export interface EventHub {
  /** Takes the response over and streams until the job ends. Throws too_many_streams or not_found before the first byte. */
  open(response: ServerResponse, request: StreamRequest): Promise<void>
  openStreams(): number
  /** Ends every stream with a closing comment; new ones are refused. */
  close(): void
}

interface Shared {
  readonly key: string
  readonly channel: EventChannel
  /** Resolves with the end of the watch. */
  readonly ready: Promise<() => void>
  /** Streams, and requests that wait to become one. */
  readers: number
}

const CHECK_EVERY_MS = 1000

export function createEventHub(options: HubOptions): EventHub {
  const { watchJob, accountConnections, isWelcome, contentLinks, ticker, turns } = options
  const channels = new Map<string, Shared>()
  const streams = new Map<EventStream, Caller>()
  let stopTicking: (() => void) | null = null
  let isClosed = false
  const stopListening = options.onCredentialsChanged(dismissUnwelcome)

  function checkAll(): void {
    for (const [stream, caller] of streams) {
      if (!isWelcome(caller)) stream.end()
      stream.check()
    }
  }

  /** The streams of callers whose credential is no longer good end. */
  function dismissUnwelcome(): void {
    for (const [stream, caller] of streams) if (!isWelcome(caller)) stream.end()
  }

  function share(key: string, { reach, jobId, base }: StreamRequest): Shared {
    const { accountId } = reach
    const channel = createEventChannel({
      base: { origin: base.origin, mountPrefix: base.mountPrefix, contentLinks },
      ticker,
      onLeft: (stream) => {
        streams.delete(stream)
        giveBack(shared, accountId)
        if (streams.size === 0) stopTicking?.()
        if (streams.size === 0) stopTicking = null
      },
    })
    const ready = watchJob(accountId, jobId, channel).then(async ({ job, preview, stop }) => {
      if (!isReachable(reach, job)) {
        stop()
        throw noSuchJob()
      }
      if (job.outputs.length > 0) await turns.run(channel.prepare(job))
      channel.begin(job, preview)
      return stop
    })
    const shared: Shared = { key, channel, ready, readers: 0 }
    channels.set(key, shared)
    return shared
  }

  function giveBack(shared: Shared, accountId: string): void {
    accountConnections.giveBack(accountId)
    shared.readers--
    if (shared.readers > 0) return
    if (channels.get(shared.key) === shared) channels.delete(shared.key)
    shared.channel.close()
    // A watch that never began has nothing to end; its failure was reported to its first reader.
    shared.ready.then(
      (stop) => stop(),
      () => {},
    )
  }

  return {
    async open(response, request) {
      const { reach, jobId, base } = request
      const { accountId, pool } = reach
      if (isClosed) throw tooManyStreams()
      await accountConnections.take(accountId)
      const key = `${accountId} ${jobId} ${pool ?? ''} ${base.origin}${base.mountPrefix}`
      const shared = channels.get(key) ?? share(key, request)
      shared.readers++
      try {
        await shared.ready
        if (isClosed) throw tooManyStreams()
      } catch (error) {
        giveBack(shared, accountId)
        throw error
      }
      const socket = await takeSocket(response)
      if (socket === null) {
        giveBack(shared, accountId)
        return
      }
      stopTicking ??= ticker.every(CHECK_EVERY_MS, checkAll)
      socket.cork()
      socket.write(encodeStreamHead(request.headers))
      const stream = new EventStream(socket, shared.channel, ticker)
      streams.set(stream, request.caller)
      shared.channel.join(stream)
      socket.uncork()
    },
    openStreams: () => streams.size,
    close() {
      isClosed = true
      stopListening()
      for (const stream of streams.keys()) stream.end()
    },
  }
}

/**
 * All streams of one job that share a link base. Every frame is made once and given to every reader; a reader that comes
 * later, or falls behind, gets the present state first and then the same frames. What the frames say is job-frames.ts.
 */
interface ChannelOptions {
  readonly base: ViewBase
  readonly ticker: Ticker
  readonly onLeft: (stream: EventStream) => void
}

interface EventChannel extends StreamSource, JobWatcher {
  /** To be done before the first snapshot is given. */
  prepare(job: Job): Work<void>
  /** The first snapshot; readers join after it. */
  begin(job: Job, preview: Preview | null): void
  join(stream: EventStream): void
  /** The last reader has left. */
  close(): void
}

function createEventChannel({ base, ticker, onLeft }: ChannelOptions): EventChannel {
  const frames = createJobFrames(base, ticker.now)
  const streams = new Set<EventStream>()
  let wait: { readonly untilMs: number; stop(): void } | null = null

  function spread(news: readonly Buffer[]): void {
    if (news.length === 0 || streams.size === 0) return
    const pieces = joinSmall(news)
    const hasEnded = frames.hasEnded()
    for (const stream of streams) {
      // A reader that is behind gets all that it missed when its socket has drained.
      if (hasEnded && !stream.isBehind) stream.end(...pieces)
      else if (stream.send(...pieces)) stream.delivered = frames.outputFrameCount()
    }
  }

  function bringUpToDate(stream: EventStream): void {
    const pieces = joinSmall(frames.present(stream.delivered))
    if (frames.hasEnded()) stream.end(...pieces)
    else if (stream.send(...pieces)) stream.delivered = frames.outputFrameCount()
  }

  /** What keeps the pace by waiting leaves when its time has come, and not when somebody looks: it would come later and later. */
  function flush(): void {
    spread(frames.due())
    const dueMs = frames.dueInMs()
    if (dueMs === null) return
    const untilMs = ticker.now() + dueMs
    if (wait !== null && wait.untilMs <= untilMs) return
    wait?.stop()
    const stop = ticker.after(Math.ceil(dueMs), () => {
      wait = null
      flush()
    })
    wait = { untilMs, stop }
  }

  function tell(news: readonly Buffer[]): void {
    spread(news)
    flush()
  }

  return {
    prepare: frames.prepare,
    begin(job, preview) {
      if (preview !== null) frames.offerPreview(preview)
      tell(frames.take(job))
    },
    join(stream) {
      streams.add(stream)
      bringUpToDate(stream)
    },
    resync: bringUpToDate,
    left(stream) {
      streams.delete(stream)
      onLeft(stream)
    },
    close: () => wait?.stop(),
    onSnapshot: (job) => tell(frames.take(job)),
    onPreview(preview) {
      frames.offerPreview(preview)
      tell([])
    },
    onGone: () => tell(frames.takeGone()),
  }
}
