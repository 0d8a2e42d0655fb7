/** What is known of an account's queue, from one bounded reading of it. */
import { BoundedMap } from '../../../../lib/bounded-map.ts'
import type { Clock } from '../../../../lib/clock.ts'
import type { SummaryStore } from '../summaries/summary-store.ts'
import { type Pace, readPace } from './predict-start.ts'
import { type Proof, proveEstimates } from './prove-estimates.ts'
import type { QueueReading } from './queue-reading.ts'

export interface WaitEstimatesDeps {
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

export async function readKnownQueue(
  { store, clock }: WaitEstimatesDeps,
  accountId: string,
  pool: string,
): Promise<KnownQueue> {
  const reading = await store.readQueue(accountId, pool)
  const { ended } = reading
  return { reading, readAtMs: clock.now().getTime(), pace: readPace(ended), proof: proveEstimates(ended) }
}

/** One reading serves everybody who asks within a short time, so a poll costs no look at the queue. */
export function createKnownQueues(deps: WaitEstimatesDeps) {
  const { clock } = deps
  const known = new BoundedMap<string, { readonly askedAtMs: number; readonly queue: Promise<KnownQueue> }>(MAX_QUEUES)

  return (accountId: string, pool: string): Promise<KnownQueue> => {
    const name = `${accountId} ${pool}`
    const nowMs = clock.now().getTime()
    const last = known.get(name)
    if (last !== undefined && Math.abs(nowMs - last.askedAtMs) < FRESH_MS) return last.queue
    const queue = readKnownQueue(deps, accountId, pool)
    known.set(name, { askedAtMs: nowMs, queue })
    queue.catch(() => known.delete(name))
    return queue
  }
}
