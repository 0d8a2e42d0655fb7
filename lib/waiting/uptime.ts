/** Milliseconds on the monotonic time that timers run on: for pacing and intervals, never for dates. */
export function uptimeMs(): number {
  return performance.now()
}

/** Passing time for things that happen again and again; tests move it by hand. */
export interface Ticker {
  now(): number
  /** Returns the end of it. */
  every(intervalMs: number, run: () => void): () => void
}

export const systemTicker: Ticker = {
  now: uptimeMs,
  every(intervalMs, run) {
    const timer = setInterval(run, intervalMs)
    return () => clearInterval(timer)
  },
}
