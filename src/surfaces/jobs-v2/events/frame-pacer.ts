/** Keeps the newest of a kind of frame and lets one pass at most every half second. */
export interface Pacer {
  offer(frame: Buffer): void
  /** The frame that may go out now, or null. */
  take(): Buffer | null
  isWaiting(): boolean
  /** The newest frame, sent or not, for a reader that has seen none. */
  newest(): Buffer | null
}

/** The contract allows two of each kind per second. */
const INTERVAL_MS = 500

export function createPacer(now: () => number): Pacer {
  let frame: Buffer | null = null
  let waiting = false
  let nextAt = Number.NEGATIVE_INFINITY
  return {
    offer(newer) {
      frame = newer
      waiting = true
    },
    take() {
      if (!waiting || now() < nextAt) return null
      waiting = false
      nextAt = now() + INTERVAL_MS
      return frame
    },
    isWaiting: () => waiting,
    newest: () => frame,
  }
}
