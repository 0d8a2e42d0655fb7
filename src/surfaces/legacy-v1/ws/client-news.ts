/**
 * Delivers messages about runs to the right clients: to the client that submitted the job, where one was named, otherwise to the
 * whole account; and, where clients can follow only one run, run after run. While the store is asked whose job it is, the messages
 * of a run wait.
 */

import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { AccountChannel } from './account-channel.ts'
import type { Batch } from './batch.ts'
import { type RunKey, statusMessage } from './run-messages.ts'

export interface ClientNewsDeps {
  readonly channelOf: (accountId: string) => AccountChannel | undefined
  readonly jobClients: JobClients
  /** The events of a run are for the client that submitted the job, where one was named; otherwise for the whole account. */
  readonly isPerClient: boolean
  /** A client gets the messages of its runs one run after the other, and none of runs that name no client. */
  readonly isOneAtATime: boolean
}

interface ClientNews {
  tell(key: RunKey, news: News<Write>): void
  /** The run has no further messages. */
  leave(jobId: string): void
  /** The account has no open socket any more. */
  forget(accountId: string): void
  clear(): void
}

type Write = (batch: Batch) => void

// Messages of a run that wait until the store has said whose it is; beyond this the oldest are dropped.
const MAX_HELD_BACK = 1000

export function createClientNews({ channelOf, jobClients, isPerClient, isOneAtATime }: ClientNewsDeps): ClientNews {
  const turns = isOneAtATime
    ? createOneAtATime<Write>(({ accountId, clientId }, write) => channelOf(accountId)?.say(write, clientId))
    : null
  const heldBack = new Map<string, News<Write>[]>()

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
    // Every client learns how many jobs are left, whichever of them sent this one.
    else if (news.kind === 'last' && channel !== undefined) sayStatus(channel)
  }

  return {
    tell(key, news) {
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
    },
    leave: (jobId) => turns?.leave(jobId),
    forget: (accountId) => turns?.forget(accountId),
    clear: () => heldBack.clear(),
  }
}

export function sayStatus(channel: AccountChannel): void {
  const { live } = channel
  channel.say((batch) => batch.addText(statusMessage(live)))
}

// News of runs for a client that knows one active run, as ComfyUI's editor does. Several of its runs may be under way at once, on
// several workers or engines. It is told of them one after the other, in the order in which they begin: what a later one says
// is kept until the earlier one has ended, and then told in one go. Previews and steps of a run whose turn has not come are left out.

/** `passing`: of no use later. `last`: the run has ended. */
type NewsKind = 'passing' | 'lasting' | 'last'

interface News<Write> {
  readonly write: Write
  readonly kind: NewsKind
}

interface RunNews {
  readonly jobId: string
  readonly accountId: string
  readonly clientId: string
}

interface OneAtATime<Write> {
  /** Sends the message now, or when it is this run's turn. */
  tell(run: RunNews, news: News<Write>): void
  /** The run has no further messages. */
  leave(jobId: string): void
  /** The account has no open socket any more. */
  forget(accountId: string): void
}

interface Line<Write> {
  active: RunNews
  /** In the order of their beginnings, with what they have said. */
  readonly waiting: Map<string, { readonly run: RunNews; readonly kept: News<Write>[] }>
}

// A graph of thousands of nodes; of a run that says more, its beginning is dropped.
const MAX_KEPT = 10_000

function createOneAtATime<Write>(say: (run: RunNews, write: Write) => void): OneAtATime<Write> {
  const lines = new Map<string, Line<Write>>()
  const keyOf = ({ accountId, clientId }: RunNews) => `${accountId}\n${clientId}`

  function keep({ waiting }: Line<Write>, run: RunNews, news: News<Write>): void {
    if (news.kind === 'passing') return
    const kept: News<Write>[] = waiting.get(run.jobId)?.kept ?? []
    kept.push(news)
    if (kept.length > MAX_KEPT) kept.shift()
    waiting.set(run.jobId, { run, kept })
  }

  /** The turn of the next run; again when that has ended already. */
  function advance(key: string, line: Line<Write>): void {
    for (const [jobId, { run, kept }] of line.waiting) {
      line.waiting.delete(jobId)
      line.active = run
      for (const { write } of kept) say(run, write)
      if (kept.at(-1)?.kind !== 'last') return
    }
    lines.delete(key)
  }

  return {
    tell(run, news) {
      const key = keyOf(run)
      const line = lines.get(key) ?? { active: run, waiting: new Map() }
      lines.set(key, line)
      if (line.active.jobId !== run.jobId) keep(line, run, news)
      else {
        say(run, news.write)
        if (news.kind === 'last') advance(key, line)
      }
    },
    leave(jobId) {
      for (const [key, line] of lines) {
        line.waiting.delete(jobId)
        if (line.active.jobId === jobId) advance(key, line)
      }
    },
    forget(accountId) {
      for (const [key, { active }] of lines) if (active.accountId === accountId) lines.delete(key)
    },
  }
}

/**
 * Which client submitted each job. The client of a prompt is remembered before its job exists, so that the first event of the
 * run finds it, and forgotten when the job ends. For a job that is not remembered (submitted before this process began, or
 * pushed out by newer ones, since the memory is bounded) the job's record is read when somebody asks.
 */
export interface JobClients {
  /** null: the submitter named no client. */
  remember(jobId: string, clientId: string | null): void
  forget(jobId: string): void
  has(jobId: string): boolean
  /** At once where the client is remembered; null: none was named. Never rejects. */
  find(accountId: string, jobId: string): string | null | Promise<string | null>
}

interface JobClientsOptions {
  /** The client that the record of a job names; null also where there is no such job. */
  readonly lookUp: (accountId: string, jobId: string) => Promise<string | null>
  readonly maxJobs?: number
}

const MAX_JOBS = 50_000

/** No socket has the empty id, so a submitter that sends it has named no client. */
export function toClientId(given: string | null): string | null {
  return given === '' ? null : given
}

export function createJobClients({ lookUp, maxJobs = MAX_JOBS }: JobClientsOptions): JobClients {
  const known = new BoundedMap<string, string | null>(maxJobs)
  const lookups = new Map<string, Promise<string | null>>()

  function remember(jobId: string, clientId: string | null): void {
    known.set(jobId, clientId)
  }

  async function readRecord(accountId: string, jobId: string): Promise<string | null> {
    // If its record cannot be read, every client gets the messages of the run.
    const clientId = await lookUp(accountId, jobId).catch(() => null)
    // The lookup is gone when the job was forgotten meanwhile, because it has ended.
    if (lookups.delete(jobId)) remember(jobId, clientId)
    return clientId
  }

  return {
    remember,
    forget(jobId) {
      known.delete(jobId)
      lookups.delete(jobId)
    },
    has: (jobId) => known.has(jobId),
    find(accountId, jobId) {
      const clientId = known.get(jobId)
      if (clientId !== undefined) return clientId
      const lookup = lookups.get(jobId) ?? readRecord(accountId, jobId)
      lookups.set(jobId, lookup)
      return lookup
    },
  }
}
