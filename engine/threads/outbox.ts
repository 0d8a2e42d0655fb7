/**
 * Events on their way to the main thread: collected during a turn of the loop and posted in messages of bounded size. When the reader
 * falls behind, `room` makes the run wait, so what is under way stays bounded, for each run and for all of them; of a flood of
 * progress and previews of one node only the newest of a batch is sent.
 */
import { isReplacedBy, type RunEvent, weightOf } from '../run/events/event-line.ts'

export interface Outbox {
  emit(event: RunEvent): void
  /** The reader has taken events of this weight. */
  taken(weight: number): void
  hasRoom(): boolean
  room(): Promise<void>
  /** Posts what has been collected, at once. */
  flush(): void
  /** The run is over; nobody takes what is left, and what a call of it still says goes nowhere. */
  close(): void
}

// Enough for the reader never to wait for us, little enough for hundreds of runs.
const MAX_WEIGHT = 33_554_432
// Of all runs. One that has nothing under way may always send: nobody waits for ever because of others.
const MAX_TOTAL_WEIGHT = 268_435_456
// What one message may hold, unless it is a single event: it is copied in one go, by a thread that serves everybody.
const MAX_MESSAGE_WEIGHT = 1_048_576
// What one batch may hold whole: every step of every ordinary node reaches its readers.
const MAX_BATCH_WEIGHT = 1_048_576

/** The outboxes of one thread. */
export function createOutboxes(): (post: (events: readonly RunEvent[]) => void) => Outbox {
  let total = 0
  let roomMade = Promise.withResolvers<void>()

  function settle(weight: number): void {
    total -= weight
    roomMade.resolve()
    roomMade = Promise.withResolvers<void>()
  }

  return function openOutbox(post) {
    let batch: RunEvent[] = []
    let batchWeight = 0
    let isScheduled = false
    /** Collected or posted, and not yet taken. */
    let underWay = 0
    let isClosed = false

    function flush(): void {
      if (batch.length === 0) return
      const events = batch
      batch = []
      batchWeight = 0
      for (const message of inMessages(events)) post(message)
    }

    function weighIn(weight: number): void {
      batchWeight += weight
      underWay += weight
      total += weight
    }

    function replaceLast(event: RunEvent): void {
      const last = batch.at(-1)
      if (last === undefined || !isReplacedBy(last, event)) return
      batch.pop()
      weighIn(-weightOf(last))
    }

    const hasRoom = () => underWay === 0 || (underWay <= MAX_WEIGHT && total <= MAX_TOTAL_WEIGHT)

    return {
      flush,
      hasRoom,
      emit(event) {
        if (isClosed) return
        if (batchWeight > MAX_BATCH_WEIGHT) replaceLast(event)
        weighIn(weightOf(event))
        batch.push(event)
        if (isScheduled) return
        isScheduled = true
        setImmediate(() => {
          isScheduled = false
          flush()
        })
      },
      taken(weight) {
        if (isClosed) return
        underWay -= weight
        settle(weight)
      },
      async room() {
        while (!hasRoom()) await roomMade.promise
      },
      close() {
        isClosed = true
        flush()
        settle(underWay)
        underWay = 0
      },
    }
  }
}

function* inMessages(events: readonly RunEvent[]): Generator<readonly RunEvent[]> {
  let message: RunEvent[] = []
  let messageWeight = 0
  for (const event of events) {
    const weight = weightOf(event)
    if (message.length > 0 && messageWeight + weight > MAX_MESSAGE_WEIGHT) {
      yield message
      message = []
      messageWeight = 0
    }
    message.push(event)
    messageWeight += weight
  }
  yield message
}
