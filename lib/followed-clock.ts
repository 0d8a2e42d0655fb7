/**
 * A clock that shows the time of another machine, such as a database server. It is set by samples of that time and runs on by this
 * machine's monotonic clock in between, so that a jump of the machine's own wall clock changes nothing. Never goes back: after a
 * sample that lies behind what it showed, it stands still until that time is reached.
 */
import { performance } from 'node:perf_hooks'
import type { Clock } from './clock.ts'

interface FollowedClock extends Clock {
  /** Asks for the other time once and sets the clock by it, unless there is none, or the answer took too long to mean anything. */
  sample(read: () => Promise<Date | null>): Promise<void>
  /** By how much the two newest samples contradict each other, beyond what their round trips explain. */
  driftMs(): number
}

interface FollowedClockOptions {
  /** Answers that took longer are dropped: nobody knows when in between the other clock was read. */
  readonly maxRoundTripMs?: number
  readonly monotonicMs?: () => number
}

interface Sample {
  /** What to add to the monotonic clock. */
  readonly offsetMs: number
  readonly roundTripMs: number
}

const MAX_ROUND_TRIP_MS = 100

/** `start`: the other time as far as it is known; the first sample replaces it. */
export function createFollowedClock(start: Date, options: FollowedClockOptions = {}): FollowedClock {
  const { maxRoundTripMs = MAX_ROUND_TRIP_MS, monotonicMs = () => performance.now() } = options
  let offsetMs = start.getTime() - monotonicMs()
  let newest: Sample | null = null
  let driftMs = 0
  let shownMs = Number.NEGATIVE_INFINITY

  return {
    now() {
      shownMs = Math.max(shownMs, Math.floor(monotonicMs() + offsetMs))
      return new Date(shownMs)
    },
    async sample(read) {
      const askedMs = monotonicMs()
      const other = await read()
      const answeredMs = monotonicMs()
      const roundTripMs = answeredMs - askedMs
      if (other === null || roundTripMs > maxRoundTripMs) return
      // The other clock was read somewhere on the way: in the middle, give or take half of it.
      const sample: Sample = { offsetMs: other.getTime() - (askedMs + answeredMs) / 2, roundTripMs }
      if (newest === null) shownMs = Number.NEGATIVE_INFINITY
      else driftMs = toDrift(newest, sample)
      newest = sample
      offsetMs = sample.offsetMs
    },
    driftMs: () => driftMs,
  }
}

function toDrift(before: Sample, after: Sample): number {
  const explainedMs = (before.roundTripMs + after.roundTripMs) / 2
  return Math.max(0, Math.abs(after.offsetMs - before.offsetMs) - explainedMs)
}
