/**
 * Events on their way to the main thread: collected during a turn of the loop and posted in one message. When the reader
 * falls behind, `room` makes the run wait, so what is under way stays bounded; of a flood of progress and previews of one
 * node only the newest of a batch is sent.
 */
import { isReplacedBy, weightOf } from '../run/event-weight.ts'
import type { RunEvent } from '../run/run-event.ts'

export interface Outbox {
  emit(event: RunEvent): void
  /** The reader has taken events of this weight. */
  taken(weight: number): void
  room(): Promise<void>
  /** Posts what has been collected, at once. */
  flush(): void
}

// Enough for the reader never to wait for us, little enough for hundreds of runs.
const MAX_WEIGHT = 67_108_864
// What one batch may hold whole: every step of every ordinary node reaches its readers.
const MAX_BATCH_WEIGHT = 1_048_576

export function createOutbox(post: (events: readonly RunEvent[]) => void): Outbox {
  let batch: RunEvent[] = []
  let batchWeight = 0
  let isScheduled = false
  let underWay = 0
  let roomMade = Promise.withResolvers<void>()

  function flush(): void {
    if (batch.length === 0) return
    const events = batch
    batch = []
    underWay += batchWeight
    batchWeight = 0
    post(events)
  }

  function replaceLast(event: RunEvent): void {
    const last = batch.at(-1)
    if (last === undefined || !isReplacedBy(last, event)) return
    batch.pop()
    batchWeight -= weightOf(last)
  }

  return {
    flush,
    emit(event) {
      if (batchWeight > MAX_BATCH_WEIGHT) replaceLast(event)
      batchWeight += weightOf(event)
      batch.push(event)
      if (isScheduled) return
      isScheduled = true
      setImmediate(() => {
        isScheduled = false
        flush()
      })
    },
    taken(weight) {
      underWay -= weight
      if (underWay > MAX_WEIGHT) return
      roomMade.resolve()
      roomMade = Promise.withResolvers<void>()
    },
    async room() {
      while (underWay > MAX_WEIGHT) await roomMade.promise
    },
  }
}
