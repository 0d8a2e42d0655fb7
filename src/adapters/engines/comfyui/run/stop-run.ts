/**
 * Ends a run by its id, never anything else. Servers differ: new ones cancel a job wherever it is, older ones forget it from
 * their queue or interrupt it, and the oldest interrupt whatever runs: so an interrupt is only sent while the queue says that
 * it is ours. The interrupt is one flag, cleared at the start of every prompt, so it has to be repeated.
 */
import type { ComfyApi, Queue } from '../wire/comfy-api.ts'

/** Where the queue says that the run is; null: nowhere. */
export type QueuePlace = 'running' | 'pending' | null

export interface Stopper {
  /** One push; the outcome shows in queue and history. Throws CallError. */
  press(promptId: string, place: QueuePlace): Promise<void>
}

export function createStopper(api: ComfyApi): Stopper {
  let knowsCancel = true
  return {
    async press(promptId, place) {
      if (place === null) return
      if (knowsCancel) {
        const cancelled = await api.cancelJob(promptId)
        knowsCancel = cancelled !== null
        if (cancelled === true) return
      }
      if (place === 'pending') await api.deletePending(promptId)
      else await api.interrupt(promptId)
    },
  }
}

export async function findPlace(api: ComfyApi, promptId: string, signal?: AbortSignal): Promise<QueuePlace> {
  return placeIn(await api.queue(signal === undefined ? {} : { signal }), promptId)
}

export function placeIn({ running, pending }: Queue, promptId: string): QueuePlace {
  if (running.some((entry) => entry.promptId === promptId)) return 'running'
  return pending.some((entry) => entry.promptId === promptId) ? 'pending' : null
}
