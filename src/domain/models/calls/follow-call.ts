/**
 * Waits for a call that another node drives. This node gets no message of its end, so it polls the store: often at first, then
 * every two seconds, and at once when a notice names the call.
 */
import { createDoorbell, type Doorbell } from '../../../../lib/waiting/doorbell.ts'
import type { CallRef, CallStore } from './call-store.ts'
import type { Listener, LiveCalls } from './live-calls.ts'

interface FollowDeps {
  readonly store: Pick<CallStore, 'isRunning'>
  readonly live: Pick<LiveCalls, 'find' | 'isClosing'>
}

/**
 * `moved`: it does not run there any more: its key's record, or this node, knows what became of it. `busy`: another request of this
 * node waits for it already, or too many requests wait for calls of other nodes. `left`: whoever waited has gone.
 */
type FollowOutcome = 'moved' | 'late' | 'left' | 'busy'

export interface FollowedCalls {
  /** At most one request waits for a call at a time, as with the calls of this node. */
  untilMoved(
    call: CallRef,
    options: { readonly listener: Listener; readonly deadlineMs: number },
  ): Promise<FollowOutcome>
  /** Something about the call changed. */
  ring(callId: string): void
}

const FIRST_PAUSE_MS = 100
const MAX_PAUSE_MS = 2000
// Each asks the store every two seconds at least.
const MAX_FOLLOWED = 1000

export function createFollowedCalls({ store, live }: FollowDeps): FollowedCalls {
  const bells = new Map<string, Doorbell>()

  /** A store that cannot be reached says nothing about the call. */
  const hasMoved = async (call: CallRef): Promise<boolean> => {
    if (live.isClosing || live.find(call.id)?.isLost === false) return true
    return !(await store.isRunning(call).catch(() => true))
  }

  async function follow(call: CallRef, bell: Doorbell, ending: AbortSignal): Promise<boolean> {
    for (let pauseMs = FIRST_PAUSE_MS; !ending.aborted; pauseMs = Math.min(MAX_PAUSE_MS, pauseMs * 2)) {
      if (await hasMoved(call)) return true
      await bell.wait(pauseMs, ending)
    }
    return false
  }

  return {
    async untilMoved(call, { listener, deadlineMs }) {
      if (bells.has(call.id) || bells.size >= MAX_FOLLOWED) return 'busy'
      const bell = createDoorbell()
      const ending = new AbortController()
      const end = () => ending.abort(null)
      const timer = setTimeout(end, deadlineMs)
      listener.left?.addEventListener('abort', end)
      if (listener.left?.aborted) end()
      bells.set(call.id, bell)
      try {
        if (await follow(call, bell, ending.signal)) return 'moved'
        return listener.left?.aborted === true ? 'left' : 'late'
      } finally {
        clearTimeout(timer)
        listener.left?.removeEventListener('abort', end)
        bells.delete(call.id)
      }
    },
    ring: (callId) => bells.get(callId)?.ring(),
  }
}
