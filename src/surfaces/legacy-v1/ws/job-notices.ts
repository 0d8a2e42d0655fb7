/**
 * From the bus to the sockets: jobs that move through the queue, which everybody of the account hears, and what their runs
 * say, which may be for one client only. The end of a run comes twice, as a
 * move and as the run's own last word, in this order; where the last word is lost (the worker died with the run), the job's
 * record tells it.
 */
import type { EngineEvent } from '../../../../engine/graph/run-event.ts'
import { BoundedSet } from '../../../../lib/bounded-map.ts'
import type { Log } from '../../../../lib/log.ts'
import type { EventBus, JobChanged, JobLive, JobMove } from '../../../domain/events/event-bus.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { Audiences } from '../audience.ts'
import { failureOf } from '../prompt-view.ts'
import type { AccountChannel } from './account-channel.ts'
import type { Batch } from './batch.ts'
import { notificationMessage, statusMessage } from './messages.ts'
import type { EndEvent, RunKey, RunStories } from './run-story.ts'

export interface NoticesDeps {
  readonly bus: Pick<EventBus<EngineEvent>, 'onChanged' | 'onLive'>
  readonly stories: RunStories
  readonly channelOf: (accountId: string) => AccountChannel | undefined
  readonly audiences: Audiences
  /** What a run says is for the client that submitted the job, where one was named; otherwise for the whole account. */
  readonly isPerClient: boolean
  /** Rejects for a job that is gone. */
  readonly findJob: (accountId: string, jobId: string) => Promise<Job>
  readonly log: Log
}

// Ends whose move has yet to be heard; only another order of notices than ours makes any.
const MAX_EARLY_ENDS = 1000
// What a run says while the store is asked whose it is; the newest is what counts.
const MAX_HELD_BACK = 1000
const RETURNED =
  'This job was given back to the queue; it is started again as soon as a worker is free. What it has shown until now is replaced.'

/** Returns the end of it. */
export function followJobs(deps: NoticesDeps): () => void {
  const { bus, stories, channelOf, audiences, isPerClient, findJob, log } = deps
  const endings = new Map<string, NodeJS.Immediate>()
  const earlyEnds = new BoundedSet<string>(MAX_EARLY_ENDS)
  const heldBack = new Map<string, Write[]>()

  const moves: Readonly<Record<JobMove, (key: RunKey, channel: AccountChannel | undefined) => void>> = {
    queued({ jobId }, channel) {
      // Submitted just now, and not by a client of this surface, which would be known.
      if (!audiences.has(jobId)) audiences.remember(jobId, null)
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
      stories.forget(jobId)
      if (channel === undefined) return
      channel.moved(0)
      channel.waiting++
      sayStatus(channel)
      tell(key, (batch) => batch.addText(notificationMessage(jobId, RETURNED)))
    },
    dropped({ jobId }, channel) {
      audiences.forget(jobId)
      if (channel === undefined) return
      channel.moved(-1)
      leaveQueue(channel)
      sayStatus(channel)
      // ComfyUI empties its queue with the last entry, and tells that as well.
      if (channel.waiting === 0) sayStatus(channel)
    },
    ended(key, channel) {
      if (earlyEnds.delete(key.jobId)) return
      channel?.moved(-1)
      const ending = setImmediate(() => void tellLostEnd(key))
      endings.set(key.jobId, ending)
    },
  }

  function onChanged({ jobId, accountId, move }: JobChanged): void {
    if (move !== undefined) moves[move]({ jobId, accountId }, channelOf(accountId))
  }

  function onLive({ jobId, accountId, event }: JobLive<EngineEvent>): void {
    const key = { jobId, accountId }
    // Some engines tell a blocked branch as a failure too; it has been told.
    if (event.type === 'failed' && event.failure.exceptionType === 'ExecutionBlocked') return
    if (isEnd(event)) tellEnd(key, event, channelOf(accountId))
    else stories.take(key, event, (write) => tell(key, write))
  }

  /** To whoever is to hear of this run. Where the store has to say who that is, everything of the run waits for it. */
  function tell(key: RunKey, write: Write): void {
    const channel = channelOf(key.accountId)
    if (channel === undefined) return
    const waiting = heldBack.get(key.jobId)
    if (waiting !== undefined) {
      waiting.push(write)
      if (waiting.length > MAX_HELD_BACK) waiting.shift()
      return
    }
    const clientId = isPerClient ? audiences.find(key.accountId, key.jobId) : null
    if (clientId instanceof Promise) void holdBack(key, write, clientId)
    else channel.say(write, clientId)
  }

  async function holdBack({ jobId, accountId }: RunKey, first: Write, asking: Promise<string | null>): Promise<void> {
    const waiting = [first]
    heldBack.set(jobId, waiting)
    const clientId = await asking
    heldBack.delete(jobId)
    for (const write of waiting) channelOf(accountId)?.say(write, clientId)
  }

  function tellEnd(key: RunKey, event: EndEvent, channel: AccountChannel | undefined): void {
    const ending = endings.get(key.jobId)
    if (ending !== undefined) clearImmediate(ending)
    else remember(key.jobId, channel)
    endings.delete(key.jobId)
    tell(key, stories.end(key, event, channel?.live ?? 0))
    audiences.forget(key.jobId)
  }

  function remember(jobId: string, channel: AccountChannel | undefined): void {
    channel?.moved(-1)
    earlyEnds.add(jobId)
  }

  async function tellLostEnd(key: RunKey): Promise<void> {
    try {
      const job = await findJob(key.accountId, key.jobId)
      const event = toEndEvent(job)
      const hasRun = stories.has(key.jobId) || job.startedAt !== null
      if (event !== null && (hasRun || job.status === 'expired')) {
        tellEnd(key, event, channelOf(key.accountId))
        return
      }
    } catch (error) {
      log.debug({ err: error, jobId: key.jobId }, 'the end of a job could not be read')
    }
    endings.delete(key.jobId)
    stories.forget(key.jobId)
    audiences.forget(key.jobId)
    const channel = channelOf(key.accountId)
    if (channel !== undefined) sayStatus(channel)
  }

  const stops = [bus.onChanged(onChanged), bus.onLive(onLive)]
  return () => {
    for (const stop of stops) stop()
    for (const ending of endings.values()) clearImmediate(ending)
    endings.clear()
    heldBack.clear()
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

function isEnd(event: EngineEvent): event is EndEvent {
  return event.type === 'succeeded' || event.type === 'failed' || event.type === 'interrupted'
}

function toEndEvent(job: Job): EndEvent | null {
  if (job.status === 'succeeded') return { type: 'succeeded' }
  if (job.status === 'canceled') return { type: 'interrupted' }
  const error = failureOf(job)
  if (error === null) return null
  return { type: 'failed', failure: { ...error, exceptionType: error.code } }
}
