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

interface FollowedJobs {
  /** The account has its first socket, or none any more: events of its runs are received from all processes, or only from this one. */
  follow(accountId: string): void
  unfollow(accountId: string): void
  stop(): void
}

export function followJobs(deps: FollowJobsDeps): FollowedJobs {
  const { bus, runs, ticker, channelOf, jobClients, findJob, listRunning, onCaughtUp, onLog, log } = deps
  const { listNewest, clock } = deps
  const news = createClientNews(deps)
  /** Runs whose last event has not come yet, each with the end of the wait for it. */
  const endings = new Map<string, () => void>()
  const catchingUp = new Map<string, NodeJS.Timeout>()
  const earlyEnds = new BoundedSet<string>(MAX_EARLY_ENDS)
  const followed = new Map<string, Followed>()
  /** By job, whether its end was found by looking: the notice may still come. */
  const ends = new BoundedMap<string, boolean>(MAX_ENDS)
  const look = createEndLook({ ticker, findJob, isFollowed: (accountId) => followed.has(accountId), onEnd: onFoundEnd })

  type Move = (key: RunKey, channel: AccountChannel | undefined, isRemote: boolean) => void
  const moves: Readonly<Record<JobMove, Move>> = {
    queued(_key, channel) {
      if (channel === undefined) return
      channel.moved(1)
      channel.waiting++
      sayStatus(channel)
    },
    taken(_key, channel) {
      if (channel === undefined) return
      leaveQueue(channel)
      channel.moved(0)
      sayStatus(channel)
    },
    returned(key, channel) {
      const { jobId } = key
      runs.forget(jobId)
      if (channel === undefined) {
        news.leave(jobId)
        return
      }
      channel.moved(0)
      channel.waiting++
      sayStatus(channel)
      news.tell(key, { write: (batch) => batch.addText(notificationMessage(jobId, RETURNED)), kind: 'lasting' })
      news.leave(jobId)
    },
    dropped({ jobId }, channel) {
      jobClients.forget(jobId)
      if (channel === undefined) return
      channel.moved(-1)
      leaveQueue(channel)
      sayStatus(channel)
      // ComfyUI sends another status when its queue becomes empty.
      if (channel.waiting === 0) sayStatus(channel)
    },
    ended(key, channel, isRemote) {
      if (earlyEnds.delete(key.jobId)) return
      endings.get(key.jobId)?.()
      endings.delete(key.jobId)
      // Without a socket its last event does not come here either, and a client that connects later never saw it run.
      if (isRemote && channel === undefined) {
        runs.forget(key.jobId)
        news.leave(key.jobId)
        jobClients.forget(key.jobId)
        return
      }
      channel?.moved(-1)
      endings.set(key.jobId, waitForEnd(key, isRemote))
    },
  }

  function onChanged({ jobId, accountId, move, isRemote }: JobChanged): void {
    // A prompt that this process took would be remembered already, so its job names no client. Another process may have taken
    // it: then the job's record is read once there is news to tell.
    if (move === 'queued' && isRemote === undefined && !jobClients.has(jobId)) jobClients.remember(jobId, null)
    if (move === undefined) return
    const key = { jobId, accountId }
    if (move !== 'ended' && move !== 'dropped') {
      ends.delete(jobId)
      look.note(key, move === 'taken' && isRemote === undefined)
    } else {
      if (ends.get(jobId) === true) return
      noteEnd(jobId, false)
    }
    moves[move](key, channelOf(accountId), isRemote === true)
  }

  function noteEnd(jobId: string, isFound: boolean): void {
    look.forget(jobId)
    ends.set(jobId, isFound)
  }

  function onFoundEnd(key: RunKey): void {
    noteEnd(key.jobId, true)
    moves.ended(key, channelOf(key.accountId), true)
  }

  /** Runs in this process are followed even without a socket: a client that connects in the middle gets their state. */
  function onOwn(notice: JobLive<LiveEvent>): void {
    if (!followed.has(notice.accountId)) onLive(notice)
  }

  function onLive({ jobId, accountId, event, isPast }: JobLive<LiveEvent>): void {
    const key = { jobId, accountId }
    // Its end was sent, perhaps from its record: clients would take a later event for the beginning of a new run.
    if (ends.has(jobId) && !endings.has(jobId)) return
    // Its moves may have come before this process listened.
    if (followed.has(accountId) && !isEnd(event) && !look.has(jobId)) look.note(key, false)
    if (isPast === true) {
      catchUp(key, event)
      return
    }
    // Some engines also report a blocked branch as a failure; clients already got a message when it was blocked.
    if (event.type === 'failed' && event.failure.exceptionType === 'ExecutionBlocked') return
    if (event.type === 'log') onLog(accountId, event.text)
    if (isEnd(event)) tellEnd(key, event, channelOf(accountId))
    else runs.take(key, event, (write) => news.tell(key, { write, kind: isPassing(event) ? 'passing' : 'lasting' }))
  }

  /** Events of a run in another process from before this one listened: they update its state and are not sent to clients. */
  function catchUp(key: RunKey, event: LiveEvent): void {
    if (isEnd(event)) {
      runs.forget(key.jobId)
      return
    }
    runs.take(key, event, () => {})
    const { jobId, accountId } = key
    clearTimeout(catchingUp.get(jobId))
    const told = setTimeout(() => {
      catchingUp.delete(jobId)
      onCaughtUp(accountId, jobId)
    }, CAUGHT_UP_MS)
    catchingUp.set(jobId, told)
  }

  /** Returns the end of the wait. */
  function waitForEnd(key: RunKey, isRemote: boolean): () => void {
    let isOver = false
    const tellIt = () => void tellLostEnd(key, () => isOver)
    const timer = isRemote ? setTimeout(tellIt, REMOTE_END_MS) : null
    const next = isRemote ? null : setImmediate(tellIt)
    return () => {
      isOver = true
      if (timer !== null) clearTimeout(timer)
      if (next !== null) clearImmediate(next)
    }
  }

  function tellEnd(key: RunKey, event: EndEvent, channel: AccountChannel | undefined): void {
    const stopWaiting = endings.get(key.jobId)
    if (stopWaiting !== undefined) stopWaiting()
    else noteEarlyEnd(key.jobId, channel)
    endings.delete(key.jobId)
    const live = () => channelOf(key.accountId)?.live ?? 0
    news.tell(key, { write: runs.end(key, event, live), kind: 'last' })
    jobClients.forget(key.jobId)
  }

  function noteEarlyEnd(jobId: string, channel: AccountChannel | undefined): void {
    channel?.moved(-1)
    earlyEnds.add(jobId)
  }

  async function tellLostEnd(key: RunKey, isTold: () => boolean): Promise<void> {
    try {
      const job = await findJob(key.accountId, key.jobId)
      if (isTold()) return
      const event = toEndEvent(job)
      const hasRun = runs.has(key.jobId) || job.startedAt !== null
      if (event !== null && (hasRun || job.status === 'expired')) {
        tellEnd(key, event, channelOf(key.accountId))
        return
      }
    } catch (error) {
      log.debug({ err: error, jobId: key.jobId }, 'the end of a job could not be read')
      if (isTold()) return
    }
    // No end was sent: the last event may still come.
    ends.delete(key.jobId)
    endings.delete(key.jobId)
    runs.forget(key.jobId)
    news.leave(key.jobId)
    jobClients.forget(key.jobId)
    const channel = channelOf(key.accountId)
    if (channel !== undefined) sayStatus(channel)
  }

  /** Jobs that run in other processes and of which no event came: their ends may not come either. */
  async function noteRunning(accountId: string): Promise<void> {
    try {
      for (const jobId of await listRunning(accountId))
        if (!ends.has(jobId) && !look.has(jobId)) look.note({ jobId, accountId }, false)
    } catch (error) {
      log.debug({ err: error }, 'the running jobs of an account could not be listed')
    }
  }

  /** Jobs that were submitted while no notices came; some of them may have ended by now. */
  async function noteMissed([accountId, { since }]: [string, Followed]): Promise<void> {
    try {
      for (const { id: jobId, createdAt } of await listNewest(accountId))
        if (createdAt >= since && !ends.has(jobId) && !look.has(jobId)) look.note({ jobId, accountId }, false)
    } catch (error) {
      log.debug({ err: error }, 'the newest jobs of an account could not be listed')
    }
  }

  async function onGap(): Promise<void> {
    await Promise.all([...[...followed.keys()].map(noteRunning), ...[...followed].map(noteMissed)])
    look.lookAtAll()
  }

  const stops = [bus.onChanged(onChanged), bus.onLive('published_here', onOwn), bus.onGap(() => void onGap())]
  return {
    follow(accountId) {
      if (followed.has(accountId)) return
      followed.set(accountId, { stop: bus.onLive({ accountId }, onLive), since: clock.now() })
      if (!bus.hasOthers) return
      look.start()
      void noteRunning(accountId)
    },
    unfollow(accountId) {
      followed.get(accountId)?.stop()
      followed.delete(accountId)
      news.forget(accountId)
      if (followed.size === 0) look.stop()
    },
    stop() {
      for (const stop of stops) stop()
      for (const { stop } of followed.values()) stop()
      followed.clear()
      look.stop()
      for (const stopWaiting of endings.values()) stopWaiting()
      endings.clear()
      for (const told of catchingUp.values()) clearTimeout(told)
      catchingUp.clear()
      news.clear()
    },
  }
}

interface Followed {
  readonly stop: Unsubscribe
  readonly since: Date
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
