/**
 * The sending end of a link: sends another process the events that it asks for of the jobs that run here. A topic is answered with
 * the events of its jobs so far, and then with everything that follows. A reader that is silent for a while counts as gone.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import { accountKey, jobIdOf, jobKey } from '../local.ts'
import type { LiveLog } from './live-log.ts'
import { Outbox, type OutboxBounds, PONG, readWatcherFrame, toHeard } from './outbox.ts'
import { type Channel, type ChannelEvents, isOfRun, type JobNotice, type ToldNotice } from './told-notice.ts'

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

interface JobRef {
  readonly jobId: string
  readonly accountId: string
}

const MAX_JOBS = 10_000

/** The last event of each job that came over a link, by the sender's numbers. Only for running jobs that a topic asks for. */
export class JobMarks {
  readonly #marks = new BoundedMap<string, { readonly job: JobRef; readonly seq: number }>(MAX_JOBS)

  /** False: no topic asks for it, or it came before. */
  advance(notice: JobNotice, seq: number, topics: ReadonlySet<string>): boolean {
    const { jobId, accountId } = notice.notice
    if (!topics.has(jobKey(jobId)) && !topics.has(accountKey(accountId))) return false
    if (seq <= (this.#marks.get(jobId)?.seq ?? 0)) return false
    // Events of other jobs are never repeated, and their marks would take the room of those that run.
    if (isOfRun(notice)) this.#marks.set(jobId, { job: { jobId, accountId }, seq })
    return true
  }

  /** A topic has ended: jobs that no other one asks for start from the beginning when they are asked for again. Returns their ids. */
  forget(topic: string, topics: ReadonlySet<string>): string[] {
    const jobId = jobIdOf(topic)
    const marks = jobId === null ? [...this.#marks.values()] : [this.#marks.get(jobId)]
    return marks.flatMap((mark) => {
      if (mark === undefined) return []
      const [ofJob, ofAccount] = [jobKey(mark.job.jobId), accountKey(mark.job.accountId)]
      const isAbout = topic === ofJob || topic === ofAccount
      if (!isAbout || topics.has(ofJob) || topics.has(ofAccount)) return []
      this.#marks.delete(mark.job.jobId)
      return [mark.job.jobId]
    })
  }
}
