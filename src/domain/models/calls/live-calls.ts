/** All calls under way in this process: found by their id, waited for when the service stops. */
import { settlesWithin } from '../../../../lib/sleep.ts'
import { RouterError } from '../router-error.ts'
import type { LiveCall } from './live-call.ts'

export interface LiveCalls {
  find(callId: string): LiveCall | null
  /** Until `work` has ended; `work` never rejects for what a provider does. */
  track(call: LiveCall, work: Promise<void>): void
  readonly size: number
  /** Resolves when all calls that are under way now have ended. */
  untilEnded(): Promise<void>
  /** True once the service stops: nothing new is let in, and what goes on may be left to the next process. */
  readonly isClosing: boolean
  /** Throws once the service stops. */
  refuseWhenClosing(): void
  /** No new calls; those under way may end until `withinMs` is over, then the rest is let go of. */
  close(withinMs: number): Promise<void>
  /** Aborted when calls under way must let go. */
  readonly stopping: AbortSignal
  /** Called whenever a call has ended: there may be room for another. */
  onEnded(listener: (accountId: string) => void): void
}

/**
 * Emptied when the call has ended. A map that grows and shrinks all the time leaves copies of its table behind, and what lies
 * in them lives on until the next full collection: so that may only be this.
 */
interface Entry {
  call: LiveCall | null
  work: Promise<void> | null
}

export function createLiveCalls(onDefect: (error: unknown, callId: string) => void): LiveCalls {
  const calls = new Map<string, Entry>()
  const ending = new AbortController()
  let isClosing = false
  let tellEnded: (accountId: string) => void = () => {}

  function track(call: LiveCall, work: Promise<void>): void {
    const { id, accountId } = call.ref
    const entry: Entry = { call, work: null }
    const leave = () => {
      entry.call = null
      entry.work = null
      calls.delete(id)
      tellEnded(accountId)
    }
    entry.work = work.then(leave, (error: unknown) => {
      onDefect(error, id)
      call.end(new RouterError('internal', 'the call failed on our side; the request id helps to find out why'))
      leave()
    })
    calls.set(id, entry)
  }

  const all = () => Promise.all([...calls.values()].map(({ work }) => work))

  return {
    find: (callId) => calls.get(callId)?.call ?? null,
    track,
    get size() {
      return calls.size
    },
    get isClosing() {
      return isClosing
    },
    refuseWhenClosing() {
      if (!isClosing) return
      throw new RouterError('unavailable', 'the service is stopping; try again in a moment', { retryAfterSeconds: 5 })
    },
    untilEnded: async () => void (await all()),
    async close(withinMs) {
      isClosing = true
      await settlesWithin(all(), withinMs)
      ending.abort()
      for (const { call } of calls.values()) call?.interrupt(ending.signal.reason)
      await all()
    },
    stopping: ending.signal,
    onEnded(listener) {
      tellEnded = listener
    },
  }
}
