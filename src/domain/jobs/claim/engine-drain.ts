/**
 * Empties one engine: it gets no more jobs, those that run there may finish for a while, and what is still there then goes back
 * to the queue for another engine, without spending an attempt.
 */
import type { Log } from '../../../../lib/log.ts'
import { sleep } from '../../../../lib/sleep.ts'
import type { EngineStatus } from '../../engine/fleet/engine-status.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import type { Worker } from './worker.ts'

export interface DrainEngineDeps {
  readonly fleet: Pick<Fleet, 'drain' | 'find' | 'onChange'>
  /** Takes the runs of all workers from an engine. */
  readonly evict: Worker['evict']
  /** How long runs may take to finish by themselves. */
  readonly timeoutMs: number
  readonly log: Log
}

export interface EngineDrain extends AsyncDisposable {
  /** Answers at once; the emptying goes on by itself. Harmless when called twice. */
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
    log.warn({ engine: engineId }, 'an engine that is drained gives its jobs back to the queue')
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
