/**
 * Stops one run by its id, and only that. New servers cancel a prompt wherever it is; older ones delete it from their queue or
 * interrupt it; the oldest interrupt whatever runs, so an interrupt is sent only while the queue says that our prompt runs. The
 * interrupt is a single flag that the server clears at the start of every prompt, so it has to be repeated.
 */
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
