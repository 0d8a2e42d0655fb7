/**
 * Calls the hook that starts and stops machines: `workers_wanted` when jobs wait (or a deployment starts) and there is no worker,
 * `workers_idle` when a pool has had nothing to do for its idle time. Calls are bounded, tried again and never waited for by
 * a job; while a pool still wants workers the call is repeated now and then, an idle pool is told of once.
 */

import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import { createBackoff, settlesWithin, sleep } from '../../../lib/waiting/sleep.ts'
import type { PoolLoad } from './deployment-store.ts'
import type { PoolSignal } from './pool-signals.ts'

type PoolEventName = 'workers_wanted' | 'workers_idle'

export interface PoolEvent extends PoolLoad {
  readonly event: PoolEventName
  readonly at: Date
  /** How much is wanted, and for how long; null: it could not be read. */
  readonly signal: PoolSignal | null
}

/** Must end when the signal does. Rejects when the other side did not take it. */
export type CallHook = (event: PoolEvent, signal: AbortSignal) => Promise<void>

export interface PoolHooks extends AsyncDisposable {
  wanted(load: PoolLoad): void
  idle(load: PoolLoad): void
  /** The pool has workers, or work: the next want or idleness is a new one. */
  served(pool: string): void
}

export interface PoolHooksDeps {
  readonly call: CallHook
  /** Further fields of the call; left out: none. */
  readonly signalOf?: (pool: string) => Promise<PoolSignal | null>
  readonly clock: Clock
  readonly log: Log
  readonly attempts?: number
  readonly firstPauseMs?: number
  readonly callTimeoutMs?: number
  /** While workers are still wanted. */
  readonly repeatMs?: number
}

const PARALLEL_CALLS_MAX = 16
const END_WITHIN_MS = 1000

export function createPoolHooks(deps: PoolHooksDeps): PoolHooks {
  const { call, clock, log, attempts = 4, firstPauseMs = 1000, callTimeoutMs = 10_000, repeatMs = 30_000 } = deps
  const ending = new AbortController()
  const underway = new Map<string, Promise<void>>()
  /** What a pool was last told, and when. */
  const told = new Map<string, { readonly event: PoolEventName; readonly at: number }>()

  async function readSignal(pool: string): Promise<PoolSignal | null> {
    try {
      return (await deps.signalOf?.(pool)) ?? null
    } catch (error) {
      log.debug({ err: error, pool }, 'a pool hook is called without figures')
      return null
    }
  }

  async function deliver(happened: Omit<PoolEvent, 'signal'>): Promise<void> {
    const event = { ...happened, signal: deps.signalOf === undefined ? null : await readSignal(happened.pool) }
    const backoff = createBackoff({ firstMs: firstPauseMs, maxMs: 30_000 })
    for (let attempt = 1; attempt <= attempts && !ending.signal.aborted; attempt++) {
      try {
        await call(event, AbortSignal.any([ending.signal, AbortSignal.timeout(callTimeoutMs)]))
        return
      } catch (error) {
        log.warn({ err: error, pool: event.pool, event: event.event, attempt }, 'a pool hook failed')
        if (attempt < attempts) await sleep(backoff.nextMs(), ending.signal)
      }
    }
  }

  function tell(event: PoolEventName, { pool, queued, running }: PoolLoad): void {
    // One call per pool at a time; the next check reports the state of that moment.
    if (underway.has(pool) || underway.size >= PARALLEL_CALLS_MAX || ending.signal.aborted) return
    told.set(pool, { event, at: clock.now().getTime() })
    const delivery = deliver({ event, pool, queued, running, at: clock.now() }).finally(() => underway.delete(pool))
    underway.set(pool, delivery)
  }

  return {
    wanted(load) {
      const last = told.get(load.pool)
      const isRecent = last?.event === 'workers_wanted' && clock.now().getTime() - last.at < repeatMs
      if (!isRecent) tell('workers_wanted', load)
    },
    idle(load) {
      if (told.get(load.pool)?.event !== 'workers_idle') tell('workers_idle', load)
    },
    served: (pool) => void told.delete(pool),
    async [Symbol.asyncDispose]() {
      ending.abort()
      await settlesWithin(Promise.all(underway.values()), END_WITHIN_MS)
    },
  }
}
