/** Time is a dependency: tests hand in a clock that they move by hand. */
export interface Clock {
  now(): Date
}

export const systemClock: Clock = { now: () => new Date() }

/** Milliseconds of the monotonic clock that timers use: for pacing and intervals, never for dates. */
export function uptimeMs(): number {
  return performance.now()
}

/** A clock with calls that come later; tests advance it by hand. */
export interface Ticker {
  now(): number
  /** Returns a function that ends it. */
  every(intervalMs: number, run: () => void): () => void
  /** Once. Returns a function that prevents it. */
  after(delayMs: number, run: () => void): () => void
}

export const systemTicker: Ticker = {
  now: uptimeMs,
  every(intervalMs, run) {
    const timer = setInterval(run, intervalMs)
    return () => clearInterval(timer)
  },
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    return () => clearTimeout(timer)
  },
}
