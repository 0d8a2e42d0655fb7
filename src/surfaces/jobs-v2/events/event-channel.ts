/**
 * All streams of one job that share a link base. Every frame is made once and given to every reader; a reader that comes
 * later, or falls behind, gets the present state first and then the same frames. What the frames say is job-frames.ts.
 */

import type { Work } from '../../../../lib/waiting/turns.ts'
import type { Ticker } from '../../../../lib/waiting/uptime.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { JobWatcher, Preview } from '../../../domain/jobs/read/watch-job.ts'
import type { EventStream, StreamSource } from '../../kit/streams/event-stream.ts'
import { joinSmall } from '../../kit/streams/join-small.ts'
import type { ViewBase } from '../views/job-view.ts'
import { createJobFrames } from './job-frames.ts'

interface ChannelOptions {
  readonly base: ViewBase
  readonly ticker: Ticker
  readonly onLeft: (stream: EventStream) => void
}

export interface EventChannel extends StreamSource, JobWatcher {
  /** To be done before the first snapshot is given. */
  prepare(job: Job): Work<void>
  /** The first snapshot; readers join after it. */
  begin(job: Job, preview: Preview | null): void
  join(stream: EventStream): void
  /** The last reader has left. */
  close(): void
}

export function createEventChannel({ base, ticker, onLeft }: ChannelOptions): EventChannel {
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
