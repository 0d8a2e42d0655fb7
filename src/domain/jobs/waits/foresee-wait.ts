/** About how long a job would wait that were submitted now. */
import { predictStart, readKnownQueue, type WaitEstimatesDeps } from './known-queues.ts'
import { READ_WAITING } from './queue-reading.ts'

interface ForeseenJob {
  readonly accountId: string
  readonly pool: string
  readonly priority: number
  /** How many of its runs the account may have at once, and the engines that can run this one have places for. */
  readonly maxSlots: number
}

interface ForeseenWait {
  /** Jobs of the account that would run before it; null: more than are looked at. */
  readonly ahead: number | null
  /** null wherever estimates have not been right often enough lately. */
  readonly seconds: number | null
}

export type ForeseeWait = (job: ForeseenJob) => Promise<ForeseenWait>

export function createForeseeWait(deps: WaitEstimatesDeps): ForeseeWait {
  return async ({ accountId, pool, priority, maxSlots }) => {
    const { reading, readAtMs, pace, proof } = await readKnownQueue(deps, accountId, pool)
    const { waiting, held } = reading
    const overtaken = waiting.findIndex((other) => other.priority < priority)
    if (overtaken === -1 && waiting.length >= READ_WAITING) return { ahead: null, seconds: null }
    const place = overtaken === -1 ? waiting.length : overtaken
    if (place === 0 && held.length < maxSlots) return { ahead: 0, seconds: 0 }
    // Nothing runs: what it would wait for is no end of a run.
    if (pace === null || held.length === 0 || maxSlots < 1 || !proof.holdsFor(place))
      return { ahead: place, seconds: null }
    const slots = Math.min(pace.slots, maxSlots)
    const startMs = predictStart({ held, ahead: waiting.slice(0, place), atMs: readAtMs }, { ...pace, slots })
    return { ahead: place, seconds: Math.max(0, Math.round(startMs / 1000)) }
  }
}
