/**
 * Delivers messages about runs to the right clients: to the client that submitted the job, where one was named, otherwise to the
 * whole account; and, where clients can follow only one run, run after run. While the store is asked whose job it is, the messages
 * of a run wait.
 */
import type { JobClients } from '../prompts/job-clients.ts'
import type { AccountChannel } from './account-channel.ts'
import type { Batch } from './batch.ts'
import { statusMessage } from './messages.ts'
import { createOneAtATime, type News } from './one-at-a-time.ts'
import type { RunKey } from './run-messages.ts'

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
