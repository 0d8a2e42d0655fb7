/** About how long a job still waits; null wherever that has not been right often enough lately. */
import { createKnownQueues, predictStart, type WaitEstimatesDeps } from './known-queues.ts'

interface WaitQuestion {
  readonly accountId: string
  readonly pool: string
  readonly jobId: string
  /** How many of its runs the account may have at once, and the engines that can run this one have places for. */
  readonly maxSlots: number
}

/** In seconds. */
export type EstimateWait = (question: WaitQuestion) => Promise<number | null>

const LEAST_SECONDS = 1

export function createEstimateWait(deps: WaitEstimatesDeps): EstimateWait {
  const { clock } = deps
  const queueOf = createKnownQueues(deps)
  return async ({ accountId, pool, jobId, maxSlots }) => {
    const { reading, readAtMs, pace, proof } = await queueOf(accountId, pool)
    const { waiting, held } = reading
    const place = waiting.findIndex(({ id }) => id === jobId)
    // Nothing runs: what it waits for is no end of a run.
    if (place === -1 || pace === null || held.length === 0 || maxSlots < 1 || !proof.holdsFor(place)) return null
    const slots = Math.min(pace.slots, maxSlots)
    const startMs = predictStart({ held, ahead: waiting.slice(0, place), atMs: readAtMs }, { ...pace, slots })
    const seconds = Math.round((startMs - (clock.now().getTime() - readAtMs)) / 1000)
    return seconds >= LEAST_SECONDS ? seconds : null
  }
}
