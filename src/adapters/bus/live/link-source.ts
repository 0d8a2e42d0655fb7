/**
 * The sending end of a link: sends another process the events that it asks for of the jobs that run here. A topic is answered with
 * the events of its jobs so far, and then with everything that follows. A reader that is silent for a while counts as gone.
 */
import { JobMarks } from './job-marks.ts'
import { PONG, readWatcherFrame, toHeard } from './link-frames.ts'
import type { LiveLog } from './live-log.ts'
import { Outbox, type OutboxBounds } from './outbox.ts'
import type { ToldNotice } from './told-notice.ts'
import type { Channel, ChannelEvents } from './transport.ts'

interface SourceDeps {
  readonly channel: Channel
  readonly log: LiveLog
  readonly bounds: OutboxBounds
  readonly now: () => number
  readonly silentMs: number
  onPreviewDropped(): void
  /** The reader was too slow. */
  onOverflow(): void
  onClosed(source: LinkSource): void
}

const MAX_TOPICS = 100_000

export class LinkSource implements ChannelEvents {
  readonly #deps: SourceDeps
  readonly #outbox: Outbox
  readonly #topics = new Set<string>()
  /** A second topic about a job brings nothing twice. */
  readonly #toldUntil = new JobMarks()
  #heardAtMs: number

  constructor(deps: SourceDeps) {
    this.#deps = deps
    this.#heardAtMs = deps.now()
    this.#outbox = new Outbox({
      bounds: deps.bounds,
      now: deps.now,
      send: (frame) => deps.channel.send(frame),
      onPreviewDropped: deps.onPreviewDropped,
      onOverflow() {
        deps.onOverflow()
        deps.channel.close()
      },
    })
  }

  offer(told: ToldNotice): void {
    if (this.#toldUntil.advance(told.notice, told.seq, this.#topics)) this.#outbox.push(told)
  }

  /** Gives a reader up that has been silent for too long: its side may be gone without a word. */
  check(): void {
    if (this.#deps.now() - this.#heardAtMs > this.#deps.silentMs) this.close()
  }

  close(): void {
    this.#deps.channel.close()
  }

  onFrame(bytes: Uint8Array): void {
    this.#heardAtMs = this.#deps.now()
    const frame = readWatcherFrame(bytes)
    if (frame === null) return
    if (frame.kind === 'ping') this.#deps.channel.send(PONG)
    else if (frame.kind === 'taken') this.#outbox.taken(frame.bytes)
    else if (frame.kind === 'want') this.#begin(frame.topic)
    else {
      this.#topics.delete(frame.topic)
      for (const jobId of this.#toldUntil.forget(frame.topic, this.#topics)) this.#outbox.forget(jobId)
    }
  }

  onClosed(): void {
    this.#outbox.close()
    this.#deps.onClosed(this)
  }

  #begin(topic: string): void {
    if (this.#topics.size >= MAX_TOPICS) return
    this.#topics.add(topic)
    this.#deps.channel.send(toHeard(topic))
    for (const told of this.#deps.log.of(topic)) this.offer(told)
  }
}
