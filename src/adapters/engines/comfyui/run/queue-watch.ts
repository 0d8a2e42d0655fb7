/**
 * Whether a run that waits in the server's own queue will still be started. Waiting is fine as long as what runs before it changes,
 * or is a run of ours whose messages keep coming. Times come in as arguments: nothing here reads a clock.
 */
import type { ComfyBounds } from '../comfy-bounds.ts'
import { type Fitness, runningIn } from '../health/fitness.ts'
import type { Queue } from '../wire/comfy-api.ts'
import type { MessageDispatcher } from '../wire/message-dispatcher.ts'
import type { Standstill } from './run-endings.ts'

interface QueueWatchDeps {
  readonly bounds: Pick<ComfyBounds, 'idleMs' | 'queueStillMs'>
  readonly dispatcher: Pick<MessageDispatcher, 'lastHeardAt'>
  readonly fitness: Pick<Fitness, 'isAbandoned'>
  /** When the run began to wait. */
  readonly sinceMs: number
}

export class QueueWatch {
  readonly #deps: QueueWatchDeps
  /** What runs while this run waits, and since when that has not changed. */
  #ahead: string | null = null
  #aheadSinceMs: number

  constructor(deps: QueueWatchDeps) {
    this.#deps = deps
    this.#aheadSinceMs = deps.sinceMs
  }

  /** Why the run has to be withdrawn; null: it may wait on. */
  look(queue: Queue, nowMs: number): Standstill | null {
    const { bounds, dispatcher, fitness } = this.#deps
    const ahead = runningIn(queue)
    if (ahead !== this.#ahead) this.#aheadSinceMs = nowMs
    this.#ahead = ahead
    const heardAt = queue.running.map(({ promptId }) => dispatcher.lastHeardAt(promptId) ?? 0)
    this.#aheadSinceMs = Math.max(this.#aheadSinceMs, ...heardAt)
    const isIdle = queue.running.every(({ promptId }) => fitness.isAbandoned(promptId))
    const limitMs = isIdle ? bounds.idleMs : bounds.queueStillMs
    if (nowMs - this.#aheadSinceMs < limitMs) return null
    return isIdle ? 'idle' : 'still'
  }
}
