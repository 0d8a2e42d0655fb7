/**
 * Drains one engine: it gets no more jobs, those that run there have some time to finish, and the rest goes back to the queue for
 * another engine, without spending an attempt.
 */
import type { Log } from '../../../../lib/log.ts'
import { sleep } from '../../../../lib/waiting/sleep.ts'
import type { EngineStatus } from '../../engine/fleet/engine-status.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import type { Worker } from './worker.ts'

interface DrainEngineDeps {
  readonly fleet: Pick<Fleet, 'drain' | 'find' | 'onChange'>
  /** Gives the jobs that run on an engine back to the queue, those of all workers. */
  readonly evict: Worker['evict']
  /** How long runs may take to finish by themselves. */
  readonly timeoutMs: number
  readonly log: Log
}

export interface EngineDrain extends AsyncDisposable {
  /** Returns at once; the drain goes on in the background. Harmless when called twice. */
  drain(engineId: string): EngineStatus
}

export function createEngineDrain({ fleet, evict, timeoutMs, log }: DrainEngineDeps): EngineDrain {
  const closing = new AbortController()
  const underWay = new Map<string, Promise<void>>()

  async function empty(engineId: string): Promise<void> {
    const settled = new AbortController()
    const unsubscribe = fleet.onChange(() => {
      if (fleet.find(engineId).state !== 'draining') settled.abort()
    })
    await sleep(timeoutMs, AbortSignal.any([closing.signal, settled.signal]))
    unsubscribe()
    if (closing.signal.aborted || fleet.find(engineId).state !== 'draining') return
    log.warn({ engine: engineId }, 'an engine did not finish its jobs while it was drained; they go back to the queue')
    await evict(engineId)
  }

  return {
    drain(engineId) {
      const status = fleet.drain(engineId)
      if (status.state === 'draining' && !underWay.has(engineId)) {
        const done = empty(engineId).finally(() => underWay.delete(engineId))
        underWay.set(engineId, done)
      }
      return status
    },
    async [Symbol.asyncDispose]() {
      closing.abort()
      await Promise.all(underWay.values())
    },
  }
}
