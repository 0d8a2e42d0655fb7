/**
 * From the bus to the sockets: the moves of jobs through the queue, which go to every socket of the account, and the events of
 * their runs, which may be for one client only (client-news.ts). The end of a run comes twice, first as a move and then as the last
 * event of the run. If that event is lost, because the worker died with the run, the end is read from the job's record.
 */
import { BoundedMap, BoundedSet } from '../../../../lib/bounded-map.ts'
import type { Clock, Ticker } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import type { EventBus, JobChanged, JobLive, JobMove, Unsubscribe } from '../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { failureOf } from '../jobs/prompt-view.ts'
import type { AccountChannel } from './account-channel.ts'
import { type ClientNewsDeps, createClientNews, sayStatus } from './client-news.ts'
import { createEndLook } from './end-look.ts'
import { type EndEvent, notificationMessage, type RunKey, type RunMessages } from './run-messages.ts'

interface FollowJobsDeps extends ClientNewsDeps {
  readonly bus: Pick<EventBus<LiveEvent>, 'hasOthers' | 'onChanged' | 'onLive' | 'onGap'>
  readonly runs: RunMessages
  readonly ticker: Ticker
  /** A run has printed something. */
  readonly onLog: (accountId: string, text: string) => void
  /** A run that began elsewhere before anybody here listened is known by now: its client may be connected. */
  readonly onCaughtUp: (accountId: string, jobId: string) => void
  /** Rejects for a job that is gone. */
  readonly findJob: (accountId: string, jobId: string) => Promise<Job>
  /** Ids of jobs that workers hold, wherever they are. */
  readonly listRunning: (accountId: string) => Promise<readonly string[]>
  /** The newest jobs of the account, whatever their state. */
  readonly listNewest: (accountId: string) => Promise<readonly Pick<Job, 'id' | 'createdAt'>[]>
  readonly clock: Clock
  readonly log: Log
}

// Ends whose move has not come yet. Our bus sends the move first, so there are none unless the order is lost.
const MAX_EARLY_ENDS = 1000
// Jobs whose end is known: what comes about them afterwards is late.
const MAX_ENDS = 10_000
// The last event of a run in another process follows its end within the time of one message. When the way is broken it does not.
const REMOTE_END_MS = 250
// The earlier events of a run come in one go; when no more of them follow, its reader is up to date.
const CAUGHT_UP_MS = 50
const RETURNED =
  'This job was given back to the queue; it is started again as soon as a worker is free. What it has shown until now is replaced.'

export class FollowedJobs {
  readonly #deps: FollowJobsDeps
  readonly #news: ReturnType<typeof createClientNews>
  /** Runs whose last event has not come yet, each with the end of the wait for it. */
  readonly #endings = new Map<string, () => void>()
  readonly #catchingUp = new Map<string, NodeJS.Timeout>()
  readonly #earlyEnds = new BoundedSet<string>(MAX_EARLY_ENDS)
  readonly #followed = new Map<string, Followed>()
  /** By job, whether its end was found by looking: the notice may still come. */
  readonly #ends = new BoundedMap<string, boolean>(MAX_ENDS)
  readonly #look: ReturnType<typeof createEndLook>
  readonly #moves: Readonly<Record<JobMove, Move>> = {
    queued: (_key, channel) => enterQueue(channel, 1),
    taken: (_key, channel) => takeFromQueue(channel),
    returned: (key, channel) => this.#returned(key, channel),
    dropped: (key, channel) => this.#dropped(key, channel),
    ended: (key, channel, isRemote) => this.#ended(key, channel, isRemote),
  }
  readonly #stops: readonly Unsubscribe[]

  constructor(deps: FollowJobsDeps) {
    this.#deps = deps
    this.#news = createClientNews(this.#deps)
    this.#look = createEndLook({
      ticker: deps.ticker,
      findJob: deps.findJob,
      isFollowed: (accountId) => this.#followed.has(accountId),
      onEnd: (key) => this.#onFoundEnd(key),
    })
    this.#stops = [
      deps.bus.onChanged((notice) => this.#onChanged(notice)),
      deps.bus.onLive('published_here', (notice) => this.#onOwn(notice)),
      deps.bus.onGap(() => void this.#onGap()),
    ]
  }

  /** The account has its first socket, or none any more: events of its runs are received from all processes, or only from this one. */
  follow(accountId: string): void {
    const { bus, clock } = this.#deps
    if (this.#followed.has(accountId)) return
    this.#followed.set(accountId, {
      stop: bus.onLive({ accountId }, (notice) => this.#onLive(notice)),
      since: clock.now(),
    })
    if (!bus.hasOthers) return
    this.#look.start()
    void this.#noteRunning(accountId)
  }

  unfollow(accountId: string): void {
    this.#followed.get(accountId)?.stop()
    this.#followed.delete(accountId)
    this.#news.forget(accountId)
    if (this.#followed.size === 0) this.#look.stop()
  }

  stop(): void {
    for (const stop of this.#stops) stop()
    for (const { stop } of this.#followed.values()) stop()
    this.#followed.clear()
    this.#look.stop()
    for (const stopWaiting of this.#endings.values()) stopWaiting()
    this.#endings.clear()
    for (const told of this.#catchingUp.values()) clearTimeout(told)
    this.#catchingUp.clear()
    this.#news.clear()
  }

  #returned(key: RunKey, channel: AccountChannel | undefined): void {
    const { jobId } = key
    this.#deps.runs.forget(jobId)
    if (channel !== undefined) {
      enterQueue(channel, 0)
      this.#news.tell(key, { write: (batch) => batch.addText(notificationMessage(jobId, RETURNED)), kind: 'lasting' })
    }
    this.#news.leave(jobId)
  }

  #dropped({ jobId }: RunKey, channel: AccountChannel | undefined): void {
    this.#deps.jobClients.forget(jobId)
    if (channel === undefined) return
    channel.moved(-1)
    leaveQueue(channel)
    sayStatus(channel)
    // ComfyUI sends another status when its queue becomes empty.
    if (channel.waiting === 0) sayStatus(channel)
  }

  #ended(key: RunKey, channel: AccountChannel | undefined, isRemote: boolean): void {
    if (this.#earlyEnds.delete(key.jobId)) return
    this.#endings.get(key.jobId)?.()
    this.#endings.delete(key.jobId)
    // Without a socket its last event does not come here either, and a client that connects later never saw it run.
    if (isRemote && channel === undefined) {
      this.#forgetRun(key.jobId)
      return
    }
    channel?.moved(-1)
    this.#endings.set(key.jobId, this.#waitForEnd(key, isRemote))
  }

  #forgetRun(jobId: string): void {
    this.#deps.runs.forget(jobId)
    this.#news.leave(jobId)
    this.#deps.jobClients.forget(jobId)
  }

  #onChanged({ jobId, accountId, move, isRemote }: JobChanged): void {
    const { jobClients, channelOf } = this.#deps
    // A prompt that this process took would be remembered already, so its job names no client. Another process may have taken
    // it: then the job's record is read once there is news to tell.
    if (move === 'queued' && isRemote === undefined && !jobClients.has(jobId)) jobClients.remember(jobId, null)
    if (move === undefined) return
    const key = { jobId, accountId }
    if (move !== 'ended' && move !== 'dropped') {
      this.#ends.delete(jobId)
      this.#look.note(key, move === 'taken' && isRemote === undefined)
    } else {
      if (this.#ends.get(jobId) === true) return
      this.#noteEnd(jobId, false)
    }
    this.#moves[move](key, channelOf(accountId), isRemote === true)
  }

  #noteEnd(jobId: string, isFound: boolean): void {
    this.#look.forget(jobId)
    this.#ends.set(jobId, isFound)
  }

  #onFoundEnd(key: RunKey): void {
    this.#noteEnd(key.jobId, true)
    this.#ended(key, this.#deps.channelOf(key.accountId), true)
  }

  /** Runs in this process are followed even without a socket: a client that connects in the middle gets their state. */
  #onOwn(notice: JobLive<LiveEvent>): void {
    if (!this.#followed.has(notice.accountId)) this.#onLive(notice)
  }

  #onLive({ jobId, accountId, event, isPast }: JobLive<LiveEvent>): void {
    const { onLog, channelOf, runs } = this.#deps
    const key = { jobId, accountId }
    // Its end was sent, perhaps from its record: clients would take a later event for the beginning of a new run.
    if (this.#ends.has(jobId) && !this.#endings.has(jobId)) return
    // Its moves may have come before this process listened.
    if (this.#followed.has(accountId) && !isEnd(event) && !this.#look.has(jobId)) this.#look.note(key, false)
    if (isPast === true) {
      this.#catchUp(key, event)
      return
    }
    // Some engines also report a blocked branch as a failure; clients already got a message when it was blocked.
    if (event.type === 'failed' && event.failure.exceptionType === 'ExecutionBlocked') return
    if (event.type === 'log') onLog(accountId, event.text)
    if (isEnd(event)) this.#tellEnd(key, event, channelOf(accountId))
    else
      runs.take(key, event, (write) => this.#news.tell(key, { write, kind: isPassing(event) ? 'passing' : 'lasting' }))
  }

  /** Events of a run in another process from before this one listened: they update its state and are not sent to clients. */
  #catchUp(key: RunKey, event: LiveEvent): void {
    const { runs, onCaughtUp } = this.#deps
    if (isEnd(event)) {
      runs.forget(key.jobId)
      return
    }
    runs.take(key, event, () => {})
    const { jobId, accountId } = key
    clearTimeout(this.#catchingUp.get(jobId))
    const told = setTimeout(() => {
      this.#catchingUp.delete(jobId)
      onCaughtUp(accountId, jobId)
    }, CAUGHT_UP_MS)
    this.#catchingUp.set(jobId, told)
  }

  /** Returns the end of the wait. */
  #waitForEnd(key: RunKey, isRemote: boolean): () => void {
    let isOver = false
    const tellIt = () => void this.#tellLostEnd(key, () => isOver)
    const timer = isRemote ? setTimeout(tellIt, REMOTE_END_MS) : null
    const next = isRemote ? null : setImmediate(tellIt)
    return () => {
      isOver = true
      if (timer !== null) clearTimeout(timer)
      if (next !== null) clearImmediate(next)
    }
  }

  #tellEnd(key: RunKey, event: EndEvent, channel: AccountChannel | undefined): void {
    const { channelOf, runs, jobClients } = this.#deps
    const stopWaiting = this.#endings.get(key.jobId)
    if (stopWaiting !== undefined) stopWaiting()
    else this.#noteEarlyEnd(key.jobId, channel)
    this.#endings.delete(key.jobId)
    const live = () => channelOf(key.accountId)?.live ?? 0
    this.#news.tell(key, { write: runs.end(key, event, live), kind: 'last' })
    jobClients.forget(key.jobId)
  }

  #noteEarlyEnd(jobId: string, channel: AccountChannel | undefined): void {
    channel?.moved(-1)
    this.#earlyEnds.add(jobId)
  }

  async #tellLostEnd(key: RunKey, isTold: () => boolean): Promise<void> {
    const { findJob, runs, channelOf, log } = this.#deps
    try {
      const job = await findJob(key.accountId, key.jobId)
      if (isTold()) return
      const event = toEndEvent(job)
      const hasRun = runs.has(key.jobId) || job.startedAt !== null
      if (event !== null && (hasRun || job.status === 'expired')) {
        this.#tellEnd(key, event, channelOf(key.accountId))
        return
      }
    } catch (error) {
      log.debug({ err: error, jobId: key.jobId }, 'the end of a job could not be read')
      if (isTold()) return
    }
    // No end was sent: the last event may still come.
    this.#ends.delete(key.jobId)
    this.#endings.delete(key.jobId)
    this.#forgetRun(key.jobId)
    const channel = channelOf(key.accountId)
    if (channel !== undefined) sayStatus(channel)
  }

  /** Jobs that run in other processes and of which no event came: their ends may not come either. */
  async #noteRunning(accountId: string): Promise<void> {
    try {
      for (const jobId of await this.#deps.listRunning(accountId))
        if (!this.#ends.has(jobId) && !this.#look.has(jobId)) this.#look.note({ jobId, accountId }, false)
    } catch (error) {
      this.#deps.log.debug({ err: error }, 'the running jobs of an account could not be listed')
    }
  }

  /** Jobs that were submitted while no notices came; some of them may have ended by now. */
  async #noteMissed([accountId, { since }]: [string, Followed]): Promise<void> {
    try {
      for (const { id: jobId, createdAt } of await this.#deps.listNewest(accountId))
        if (createdAt >= since && !this.#ends.has(jobId) && !this.#look.has(jobId))
          this.#look.note({ jobId, accountId }, false)
    } catch (error) {
      this.#deps.log.debug({ err: error }, 'the newest jobs of an account could not be listed')
    }
  }

  async #onGap(): Promise<void> {
    await Promise.all([
      ...[...this.#followed.keys()].map((accountId) => this.#noteRunning(accountId)),
      ...[...this.#followed].map((accountId_since) => this.#noteMissed(accountId_since)),
    ])
    this.#look.lookAtAll()
  }
}

interface Followed {
  readonly stop: Unsubscribe
  readonly since: Date
}

type Move = (key: RunKey, channel: AccountChannel | undefined, isRemote: boolean) => void

function enterQueue(channel: AccountChannel | undefined, by: 0 | 1): void {
  if (channel === undefined) return
  channel.moved(by)
  channel.waiting++
  sayStatus(channel)
}

function takeFromQueue(channel: AccountChannel | undefined): void {
  if (channel === undefined) return
  leaveQueue(channel)
  channel.moved(0)
  sayStatus(channel)
}

function leaveQueue(channel: AccountChannel): void {
  channel.waiting = Math.max(0, channel.waiting - 1)
}

/** Useless once the next event of its kind has come. */
function isPassing({ type }: LiveEvent): boolean {
  return type === 'preview' || type === 'node_progress'
}

function isEnd(event: LiveEvent): event is EndEvent {
  return event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted'
}

function toEndEvent(job: Job): EndEvent | null {
  if (job.status === 'succeeded') return { type: 'succeeded' }
  if (job.status === 'canceled') return { type: 'interrupted' }
  const error = failureOf(job)
  if (error === null) return null
  return { type: 'failed', failure: { ...error, exceptionType: error.code } }
}
