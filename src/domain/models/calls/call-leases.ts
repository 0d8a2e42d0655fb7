/**
 * The leases of this node's calls. A node renews all of them in one write, and that write tells it what it has to know: which
 * calls another node has taken over, and which ones somebody wants to stop. While the store cannot be reached calls go on: every
 * write about them names its holder, so that nothing a node does after it lost a call counts.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Log } from '../../../../lib/log.ts'
import { createDoorbell, type Doorbell } from '../../../../lib/waiting/sleep.ts'
import type { CallRef, CallStore, HeldCall, NewLease } from './call-store.ts'
import type { Listener, LiveCalls } from './live-calls.ts'

interface CallLeasesDeps {
  /** Names this process among all that ever use the store. */
  readonly nodeId: string
  readonly store: Pick<CallStore, 'renew' | 'release'>
  readonly live: Pick<LiveCalls, 'list'>
  readonly clock: Clock
  readonly log: Log
}

export interface CallLeases {
  /** For a call that this node takes now. */
  next(): NewLease
  /** Whether this node still has the call, asked of the store. */
  confirm(call: HeldCall): Promise<boolean>
  /** Every call that this node knows to be its own. */
  held(): HeldCall[]
  /** Renews a call, too, that this node holds and does not drive. */
  keep(call: HeldCall): void
  /** Ends that; false when the call was lost meanwhile. */
  take(call: HeldCall): boolean
  /** Lets another node take the call over: with the next renewal, or when this node stops. */
  letGo(call: HeldCall): void
  /** Rejects when the store cannot be reached. */
  renew(): Promise<void>
  /** Leaves what this node still holds to the others. Never rejects: leases lapse by themselves. */
  giveBack(): Promise<void>
  /** Whether the store could not be reached a short while ago: then the leases of others may have lapsed for the same reason. */
  isTroubled(): boolean
  noteTrouble(): void
}

const LEASE_MS = 30_000
export const RENEW_EVERY_MS = 10_000
// One and a half leases: who was cut off for as long as this node has renewed by then.
const TROUBLE_MS = 45_000

export function createCallLeases({ nodeId, store, live, clock, log }: CallLeasesDeps): CallLeases {
  const kept = new Map<string, HeldCall>()
  const leaving = new Map<string, HeldCall>()
  let troubledAt: number | null = null
  let renewing: Promise<void> | null = null

  const next = (): NewLease => ({ owner: nodeId, until: new Date(clock.now().getTime() + LEASE_MS) })

  async function renewAll(): Promise<void> {
    const calls = live.list().filter(({ isLost }) => !isLost)
    const waiting = [...kept.values()]
    const held = [...calls.map(({ ref }) => ref), ...waiting]
    const renewed = held.length === 0 ? [] : await store.renew(held, next().until)
    const stopAsked = new Map(renewed.map(({ id, isStopAsked }) => [id, isStopAsked]))
    for (const call of calls) {
      const isStopAsked = stopAsked.get(call.ref.id)
      if (isStopAsked === undefined) call.lose()
      else if (isStopAsked) call.askToStop()
    }
    for (const { id } of waiting) if (!stopAsked.has(id)) kept.delete(id)
    await releaseLeaving()
  }

  async function releaseLeaving(): Promise<void> {
    const calls = [...leaving.values()]
    if (calls.length === 0) return
    await store.release(calls)
    for (const call of calls) if (leaving.get(call.id) === call) leaving.delete(call.id)
  }

  function noteTrouble(): void {
    troubledAt = clock.now().getTime()
  }

  return {
    next,
    confirm: async (call) => (await store.renew([call], next().until)).length > 0,
    held: () => [...live.list().map(({ ref }) => ref), ...kept.values()],
    keep: (call) => void kept.set(call.id, call),
    take: (call) => kept.get(call.id) === call && kept.delete(call.id),
    letGo: (call) => void leaving.set(call.id, call),
    renew() {
      renewing ??= renewAll()
        .catch((error: unknown) => {
          noteTrouble()
          throw error
        })
        .finally(() => {
          renewing = null
        })
      return renewing
    },
    async giveBack() {
      for (const call of kept.values()) leaving.set(call.id, call)
      kept.clear()
      try {
        await releaseLeaving()
      } catch (error) {
        log.error({ err: error }, 'leases of model calls could not be given back; they run out by themselves')
      }
    },
    isTroubled: () => troubledAt !== null && clock.now().getTime() - troubledAt < TROUBLE_MS,
    noteTrouble,
  }
}

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

/**
 * Waits for a call that another node drives. This node gets no message of its end, so it polls the store: often at first, then
 * every two seconds, and at once when a notice names the call.
 */
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
