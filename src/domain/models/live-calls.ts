/** All calls under way in this process: found by their id, waited for when the service stops. */
import { settlesWithin } from '../../lib/sleep.ts'
import type { LiveCall } from './live-call.ts'
import { RouterError } from './router-error.ts'

export interface LiveCalls {
  find(callId: string): LiveCall | null
  /** Until `work` has ended; `work` never rejects for what a provider does. */
  track(call: LiveCall, work: Promise<void>): void
  readonly size: number
  /** Resolves when all calls that are under way now have ended. */
  untilEnded(): Promise<void>
  /** Throws once the service stops. */
  refuseWhenClosing(): void
  /** No new calls; those under way may end until `withinMs` is over, then the rest is let go of. */
  close(withinMs: number): Promise<void>
  /** Aborted when calls under way must let go. */
  readonly stopping: AbortSignal
  /** Called whenever a call has ended: there may be room for another. */
  onEnded(listener: (accountId: string) => void): void
}

export function createLiveCalls(onDefect: (error: unknown, callId: string) => void): LiveCalls {
  const calls = new Map<string, { readonly call: LiveCall; readonly work: Promise<void> }>()
  const ending = new AbortController()
  let isClosing = false
  let tellEnded: (accountId: string) => void = () => {}

  function track(call: LiveCall, work: Promise<void>): void {
    const { id, accountId } = call.ref
    const settled = work
      .catch((error: unknown) => {
        onDefect(error, id)
        call.end(new RouterError('internal', 'the call failed on our side; the request id helps to find out why'))
      })
      .then(() => {
        calls.delete(id)
        tellEnded(accountId)
      })
    calls.set(id, { call, work: settled })
  }

  const all = () => Promise.all([...calls.values()].map(({ work }) => work))

  return {
    find: (callId) => calls.get(callId)?.call ?? null,
    track,
    get size() {
      return calls.size
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
      await all()
    },
    stopping: ending.signal,
    onEnded(listener) {
      tellEnded = listener
    },
  }
}
