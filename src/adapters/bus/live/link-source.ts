/**
 * One end of a link: tells another process what it wants to hear of the jobs that run here. A topic is answered with what its jobs
 * have told so far, and then with everything that follows. A reader that is not heard of for a while is gone.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { accountKey, jobKey } from '../subscriptions.ts'
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
const MAX_TOLD_JOBS = 10_000

export class LinkSource implements ChannelEvents {
  readonly #deps: SourceDeps
  readonly #outbox: Outbox
  readonly #topics = new Set<string>()
  /** By job, how far it was told: a second topic about it brings nothing twice. */
  readonly #toldUntil = new BoundedMap<string, number>(MAX_TOLD_JOBS)
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
    if (this.#topics.has(jobKey(told.jobId)) || this.#topics.has(accountKey(told.accountId))) this.#tell(told)
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
    else if (frame.kind === 'leave') this.#topics.delete(frame.topic)
    else this.#begin(frame.topic)
  }

  onClosed(): void {
    this.#outbox.close()
    this.#deps.onClosed(this)
  }

  #begin(topic: string): void {
    if (this.#topics.size >= MAX_TOPICS) return
    this.#topics.add(topic)
    this.#deps.channel.send(toHeard(topic))
    for (const told of this.#deps.log.of(topic)) this.#tell(told)
  }

  #tell(told: ToldNotice): void {
    if (told.seq <= (this.#toldUntil.get(told.jobId) ?? 0)) return
    this.#toldUntil.set(told.jobId, told.seq)
    this.#outbox.push(told)
  }
}
