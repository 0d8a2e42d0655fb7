/** Passing time for things that happen again and again; tests move it by hand. `now` never jumps with the wall clock. */
export interface Ticker {
  now(): number
  /** Returns the end of it. */
  every(intervalMs: number, run: () => void): () => void
}

export const systemTicker: Ticker = {
  now: () => performance.now(),
  every(intervalMs, run) {
    const timer = setInterval(run, intervalMs)
    return () => clearInterval(timer)
  },
}
