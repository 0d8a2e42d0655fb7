/**
 * Keeps the newest value of a kind and lets two frames of it pass per second. After a rest two may pass at once: with a fixed pause
 * between frames one that came late would hold up all that follow it, for as long as they come twice a second. Only what passes is
 * encoded.
 */
interface FramePacer<Value> {
  offer(value: Value): void
  /** The frame that may go out now, or null. */
  take(): Buffer | null
  /** When the frame that waits may go out; null: none waits. */
  dueInMs(): number | null
  /** The newest frame, sent or not, for a reader that has seen none. */
  newest(): Buffer | null
}

/** The contract allows two of each kind per second. */
const INTERVAL_MS = 500

export function createFramePacer<Value>(now: () => number, encode: (value: Value) => Buffer): FramePacer<Value> {
  let unencoded: Value | undefined
  let frame: Buffer | null = null
  let waiting = false
  /** Until when all that passed has used its time. */
  let usedUntil = Number.NEGATIVE_INFINITY

  function newest(): Buffer | null {
    if (unencoded !== undefined) frame = encode(unencoded)
    unencoded = undefined
    return frame
  }

  const dueInMs = () => (waiting ? Math.max(0, usedUntil - INTERVAL_MS - now()) : null)

  return {
    offer(value) {
      unencoded = value
      waiting = true
    },
    take() {
      if (dueInMs() !== 0) return null
      waiting = false
      usedUntil = Math.max(now(), usedUntil) + INTERVAL_MS
      return newest()
    },
    dueInMs,
    newest,
  }
}
