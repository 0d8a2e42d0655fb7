/**
 * Stops one run by its id, and only that. New servers cancel a prompt wherever it is; older ones delete it from their queue or
 * interrupt it; the oldest interrupt whatever runs, so an interrupt is sent only while the queue says that our prompt runs. The
 * interrupt is a single flag that the server clears at the start of every prompt, so it has to be repeated.
 */

import type { Log } from '../../../../../lib/log.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { ComfyApi, Queue } from '../wire/comfy-api.ts'

/** Where the queue says that the run is; null: nowhere. */
export type QueuePosition = 'running' | 'pending' | null

export interface Stopper {
  /** Asks once; whether it worked shows in queue and history. Throws CallError. */
  stop(promptId: string, position: QueuePosition): Promise<void>
}

export function createStopper(api: ComfyApi): Stopper {
  let knowsCancel = true
  return {
    async stop(promptId, position) {
      if (position === null) return
      if (knowsCancel) {
        const cancelled = await api.cancelJob(promptId)
        knowsCancel = cancelled !== null
        if (cancelled === true) return
      }
      if (position === 'pending') await api.deletePending(promptId)
      else await api.interrupt(promptId)
    },
  }
}

export async function findInQueue(api: ComfyApi, promptId: string, signal?: AbortSignal): Promise<QueuePosition> {
  return positionIn(await api.queue(signal === undefined ? {} : { signal }), promptId)
}

export function positionIn({ running, pending }: Queue, promptId: string): QueuePosition {
  if (running.some((entry) => entry.promptId === promptId)) return 'running'
  return pending.some((entry) => entry.promptId === promptId) ? 'pending' : null
}

/**
 * Removes the history entries of runs that are over, several at once and a moment later: right after a run, its outputs and the
 * next run need the server more. An entry that stays does no harm.
 */
export interface Forgetter {
  add(promptId: string): void
  /** Removes the entries that still wait. Harmless when called twice. */
  close(): Promise<void>
}

interface ForgetterDeps {
  readonly api: Pick<ComfyApi, 'forgetHistory'>
  readonly bounds: Pick<ComfyBounds, 'forgetAfterMs'>
  readonly log: Log
}

const MAX_AT_ONCE = 100

export function createForgetter({ api, bounds, log }: ForgetterDeps): Forgetter {
  let waiting: string[] = []
  let timer: NodeJS.Timeout | null = null

  async function flush(): Promise<void> {
    if (timer !== null) clearTimeout(timer)
    timer = null
    const promptIds = waiting
    waiting = []
    if (promptIds.length === 0) return
    await api.forgetHistory(promptIds).catch((error) => log.debug({ err: error }, 'history entries stay on an engine'))
  }

  return {
    add(promptId) {
      waiting.push(promptId)
      if (waiting.length >= MAX_AT_ONCE) flush()
      else timer ??= setTimeout(flush, bounds.forgetAfterMs)
    },
    close: flush,
  }
}
