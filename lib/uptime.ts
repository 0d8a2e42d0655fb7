/** Milliseconds on the monotonic time that timers run on: for pacing and intervals, never for dates. */
export function uptimeMs(): number {
  return performance.now()
}
