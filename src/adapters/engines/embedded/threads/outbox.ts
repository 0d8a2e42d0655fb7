/**
 * Events on their way to the main thread: collected during a turn of the loop and posted in one message. When the reader
 * falls behind, `room` makes the run wait, so what is under way stays bounded; of progress and previews of one node only
 * the newest of a batch is sent.
 */
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
const EVENT_WEIGHT = 256

/** What an event costs while it is under way; both sides compute the same. */
export function weightOf(event: RunEvent): number {
  if (event.type === 'preview') return EVENT_WEIGHT + event.bytes.byteLength
  if (event.type === 'log' || event.type === 'node_text') return EVENT_WEIGHT + event.text.length
  if (event.type !== 'node_report') return EVENT_WEIGHT
  let weight = EVENT_WEIGHT
  for (const items of Object.values(event.report)) {
    for (const item of items) weight += item.kind === 'file' ? item.bytes.byteLength : EVENT_WEIGHT
  }
  return weight
}

function isReplacedBy(older: RunEvent | undefined, newer: RunEvent): boolean {
  if (older === undefined || older.type !== newer.type) return false
  if (newer.type !== 'node_progress' && newer.type !== 'preview') return false
  return (older as typeof newer).nodeId === newer.nodeId
}

export function createOutbox(post: (events: readonly RunEvent[]) => void): Outbox {
  let batch: RunEvent[] = []
  let isScheduled = false
  let underWay = 0
  let roomMade = Promise.withResolvers<void>()

  function flush(): void {
    if (batch.length === 0) return
    const events = batch
    batch = []
    for (const event of events) underWay += weightOf(event)
    post(events)
  }

  return {
    flush,
    emit(event) {
      if (isReplacedBy(batch.at(-1), event)) batch.pop()
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
