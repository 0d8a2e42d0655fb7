/**
 * About how long a job still waits; null wherever that has not been right often enough lately. One bounded reading of an account's
 * queue serves everybody who asks within a short time, so a poll costs no look at the queue.
 */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { SummaryStore } from '../summaries/summary-store.ts'
import { type Pace, predictStart, readPace } from './predict-start.ts'
import { type Proof, proveEstimates } from './prove-estimates.ts'
import type { QueueReading } from './queue-reading.ts'

interface WaitQuestion {
  readonly accountId: string
  readonly pool: string
  readonly jobId: string
  /** How many of its runs the account may have at once, and the engines that can run this one have places for. */
  readonly maxSlots: number
}

/** In seconds. */
export type EstimateWait = (question: WaitQuestion) => Promise<number | null>

interface WaitEstimatesDeps {
  readonly store: Pick<SummaryStore, 'readQueue'>
  readonly clock: Clock
}

interface KnownQueue {
  readonly reading: QueueReading
  readonly readAtMs: number
  readonly pace: Pace | null
  readonly proof: Proof
}

const MAX_QUEUES = 200
const FRESH_MS = 2000
const LEAST_SECONDS = 1

export function createEstimateWait({ store, clock }: WaitEstimatesDeps): EstimateWait {
  const known = new BoundedMap<string, { readonly askedAtMs: number; readonly queue: Promise<KnownQueue> }>(MAX_QUEUES)

  async function read(accountId: string, pool: string): Promise<KnownQueue> {
    const reading = await store.readQueue(accountId, pool)
    const { ended } = reading
    return { reading, readAtMs: clock.now().getTime(), pace: readPace(ended), proof: proveEstimates(ended) }
  }

  function queueOf(accountId: string, pool: string): Promise<KnownQueue> {
    const name = `${accountId} ${pool}`
    const nowMs = clock.now().getTime()
    const last = known.get(name)
    if (last !== undefined && Math.abs(nowMs - last.askedAtMs) < FRESH_MS) return last.queue
    const queue = read(accountId, pool)
    known.set(name, { askedAtMs: nowMs, queue })
    queue.catch(() => known.delete(name))
    return queue
  }

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
