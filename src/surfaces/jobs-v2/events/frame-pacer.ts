/** Keeps the newest value of a kind and lets a frame of it pass at most every half second. Only what passes is encoded. */
interface FramePacer<Value> {
  offer(value: Value): void
  /** The frame that may go out now, or null. */
  take(): Buffer | null
  isWaiting(): boolean
  /** The newest frame, sent or not, for a reader that has seen none. */
  newest(): Buffer | null
}

/** The contract allows two of each kind per second. */
const INTERVAL_MS = 500

export function createFramePacer<Value>(now: () => number, encode: (value: Value) => Buffer): FramePacer<Value> {
  let unencoded: Value | undefined
  let frame: Buffer | null = null
  let waiting = false
  let nextAt = Number.NEGATIVE_INFINITY

  function newest(): Buffer | null {
    if (unencoded !== undefined) frame = encode(unencoded)
    unencoded = undefined
    return frame
  }

  return {
    offer(value) {
      unencoded = value
      waiting = true
    },
    take() {
      if (!waiting || now() < nextAt) return null
      waiting = false
      nextAt = now() + INTERVAL_MS
      return newest()
    },
    isWaiting: () => waiting,
    newest,
  }
}
