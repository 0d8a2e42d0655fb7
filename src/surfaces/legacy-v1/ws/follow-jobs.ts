/**
 * From the bus to the sockets: the moves of jobs through the queue, which every socket of the account hears, and the events of
 * their runs, which may be for one client only. The end of a run comes twice, first as a move and then as the last event of the
 * run. Where that event is lost, because the worker died with the run, the end is read from the job's record.
 */
import { BoundedMap, BoundedSet } from '../../../../lib/bounded-map.ts'
import type { Log } from '../../../../lib/log.ts'
import type { Ticker } from '../../../../lib/waiting/uptime.ts'
import type { EventBus, JobChanged, JobLive, JobMove, Unsubscribe } from '../../../domain/events/event-bus.ts'
import type { LiveEvent } from '../../../domain/events/live-event.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { failureOf } from '../jobs/prompt-view.ts'
import type { JobClients } from '../prompts/job-clients.ts'
import type { AccountChannel } from './account-channel.ts'
import type { Batch } from './batch.ts'
import { createEndLook } from './end-look.ts'
import { notificationMessage, statusMessage } from './messages.ts'
import { createOneAtATime, type News } from './one-at-a-time.ts'
import type { EndEvent, RunKey, RunMessages } from './run-messages.ts'

interface FollowJobsDeps {
  readonly bus: Pick<EventBus<LiveEvent>, 'hasOthers' | 'onChanged' | 'onLive' | 'onGap'>
  readonly runs: RunMessages
  readonly ticker: Ticker
  readonly channelOf: (accountId: string) => AccountChannel | undefined
  readonly jobClients: JobClients
  /** The events of a run are for the client that submitted the job, where one was named; otherwise for the whole account. */
  readonly isPerClient: boolean
  /** A client is told of its runs one after the other, and of runs of nobody it is told nothing. */
  readonly isOneAtATime: boolean
  /** A run has printed something. */
  readonly onLog: (accountId: string, text: string) => void
  /** A run that began elsewhere before anybody here listened is known by now: its client may be connected. */
  readonly onCaughtUp: (accountId: string, jobId: string) => void
  /** Rejects for a job that is gone. */
  readonly findJob: (accountId: string, jobId: string) => Promise<Job>
  /** Ids of jobs that workers hold, wherever they are. */
  readonly listRunning: (accountId: string) => Promise<readonly string[]>
  readonly log: Log
}

// Ends whose move has not come yet. Our bus sends the move first, so there are none unless the order is lost.
const MAX_EARLY_ENDS = 1000
// Jobs whose end is known: what comes about them afterwards is late.
const MAX_ENDS = 10_000
// Messages of a run that wait until the store has said whose it is; beyond this the oldest are dropped.
const MAX_HELD_BACK = 1000
// The last event of a run in another process follows its end within the time of one message. When the way is broken it does not.
const REMOTE_END_MS = 250
// What a run has told so far comes in one go; when nothing more of it follows, its reader is up to date.
const CAUGHT_UP_MS = 50
const RETURNED =
  'This job was given back to the queue; it is started again as soon as a worker is free. What it has shown until now is replaced.'

interface FollowedJobs {
  /** The account has its first socket, or none any more: the news of its runs are heard wherever they run, or only here. */
  follow(accountId: string): void
  unfollow(accountId: string): void
  stop(): void
}

export function followJobs(deps: FollowJobsDeps): FollowedJobs {
  const { bus, runs, ticker, channelOf, jobClients, isPerClient, findJob, listRunning, onCaughtUp, onLog, log } = deps
  const turns = deps.isOneAtATime
    ? createOneAtATime<Write>(({ accountId, clientId }, write) => channelOf(accountId)?.say(write, clientId))
    : null
  /** Runs whose last event has not come yet, each with the end of the wait for it. */
  const endings = new Map<string, () => void>()
  const catchingUp = new Map<string, NodeJS.Timeout>()
  const earlyEnds = new BoundedSet<string>(MAX_EARLY_ENDS)
  const heldBack = new Map<string, News<Write>[]>()
  const followed = new Map<string, Unsubscribe>()
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
        turns?.leave(jobId)
        return
      }
      channel.moved(0)
      channel.waiting++
      sayStatus(channel)
      tell(key, { write: (batch) => batch.addText(notificationMessage(jobId, RETURNED)), kind: 'lasting' })
      turns?.leave(jobId)
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
      // Nobody listens, so its last event will not come here either; who connects from now on never saw it run.
      if (isRemote && channel === undefined) {
        runs.forget(key.jobId)
        turns?.leave(key.jobId)
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

  /** Runs in this process are followed without a socket too: a client that connects in the middle is told how far its run is. */
  function onOwn(notice: JobLive<LiveEvent>): void {
    if (!followed.has(notice.accountId)) onLive(notice)
  }

  function onLive({ jobId, accountId, event, isPast }: JobLive<LiveEvent>): void {
    const key = { jobId, accountId }
    // Its end was told, from its record perhaps: clients take what follows an end for the beginning of something new.
    if (ends.has(jobId) && !endings.has(jobId)) return
    // Its moves may have come before this process listened.
    if (followed.has(accountId) && !isEnd(event) && !look.has(jobId)) look.note(key, false)
    if (isPast === true) {
      catchUp(key, event)
      return
    }
    // Some engines also report a blocked branch as a failure; clients were told when it was blocked.
    if (event.type === 'failed' && event.failure.exceptionType === 'ExecutionBlocked') return
    if (event.type === 'log') onLog(accountId, event.text)
    if (isEnd(event)) tellEnd(key, event, channelOf(accountId))
    else runs.take(key, event, (write) => tell(key, { write, kind: isPassing(event) ? 'passing' : 'lasting' }))
  }

  /** What a run elsewhere told before anybody here listened: followed, and told to nobody. */
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

  /** To the client of this run. While the store is asked who that is, all messages of the run wait. */
  function tell(key: RunKey, news: News<Write>): void {
    if (channelOf(key.accountId) === undefined) {
      if (news.kind === 'last') turns?.leave(key.jobId)
      return
    }
    const waiting = heldBack.get(key.jobId)
    if (waiting !== undefined) {
      waiting.push(news)
      if (waiting.length > MAX_HELD_BACK) waiting.shift()
      return
    }
    const clientId = isPerClient ? jobClients.find(key.accountId, key.jobId) : null
    if (clientId instanceof Promise) void holdBack(key, news, clientId)
    else deliver(key, news, clientId)
  }

  async function holdBack(key: RunKey, first: News<Write>, asking: Promise<string | null>): Promise<void> {
    const waiting = [first]
    heldBack.set(key.jobId, waiting)
    const clientId = await asking
    heldBack.delete(key.jobId)
    for (const news of waiting) deliver(key, news, clientId)
  }

  function deliver(key: RunKey, news: News<Write>, clientId: string | null): void {
    const channel = channelOf(key.accountId)
    if (turns === null) channel?.say(news.write, clientId)
    else if (clientId !== null) turns.tell({ ...key, clientId }, news)
    // Everybody hears how many jobs are left, whoever sent this one.
    else if (news.kind === 'last' && channel !== undefined) sayStatus(channel)
  }

  function tellEnd(key: RunKey, event: EndEvent, channel: AccountChannel | undefined): void {
    const stopWaiting = endings.get(key.jobId)
    if (stopWaiting !== undefined) stopWaiting()
    else noteEarlyEnd(key.jobId, channel)
    endings.delete(key.jobId)
    const live = () => channelOf(key.accountId)?.live ?? 0
    tell(key, { write: runs.end(key, event, live), kind: 'last' })
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
    // Nothing was told: the last event may still come.
    ends.delete(key.jobId)
    endings.delete(key.jobId)
    runs.forget(key.jobId)
    turns?.leave(key.jobId)
    jobClients.forget(key.jobId)
    const channel = channelOf(key.accountId)
    if (channel !== undefined) sayStatus(channel)
  }

  /** Jobs that run elsewhere and have told nothing that was heard here: their ends may not be told either. */
  async function noteRunning(accountId: string): Promise<void> {
    try {
      for (const jobId of await listRunning(accountId))
        if (!ends.has(jobId) && !look.has(jobId)) look.note({ jobId, accountId }, false)
    } catch (error) {
      log.debug({ err: error }, 'the running jobs of an account could not be listed')
    }
  }

  async function onGap(): Promise<void> {
    await Promise.all([...followed.keys()].map(noteRunning))
    look.lookAtAll()
  }

  const stops = [bus.onChanged(onChanged), bus.onLive('published_here', onOwn), bus.onGap(() => void onGap())]
  return {
    follow(accountId) {
      if (followed.has(accountId)) return
      followed.set(accountId, bus.onLive({ accountId }, onLive))
      if (!bus.hasOthers) return
      look.start()
      void noteRunning(accountId)
    },
    unfollow(accountId) {
      followed.get(accountId)?.()
      followed.delete(accountId)
      turns?.forget(accountId)
      if (followed.size === 0) look.stop()
    },
    stop() {
      for (const stop of [...stops, ...followed.values()]) stop()
      followed.clear()
      look.stop()
      for (const stopWaiting of endings.values()) stopWaiting()
      endings.clear()
      for (const told of catchingUp.values()) clearTimeout(told)
      catchingUp.clear()
      heldBack.clear()
    },
  }
}

type Write = (batch: Batch) => void

function sayStatus(channel: AccountChannel): void {
  const { live } = channel
  channel.say((batch) => batch.addText(statusMessage(live)))
}

function leaveQueue(channel: AccountChannel): void {
  channel.waiting = Math.max(0, channel.waiting - 1)
}

/** Of no use to whoever hears of it after the next one. */
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
