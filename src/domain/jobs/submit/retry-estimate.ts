/** How soon a full queue is likely to have room again: about the time between two finished jobs, within bounds. */
import type { Clock } from '../../../../lib/clock.ts'

const DEFAULT_SECONDS = 5
const MAX_SECONDS = 60
// How much the newest gap counts: a burst of short jobs moves the estimate within a few jobs.
const NEWEST_SHARE = 0.2

interface RetryEstimate {
  /** A job has ended and made room. */
  finished(): void
  /** Whole seconds, at least 1: clients drop fractions and spin on 0. */
  retryAfterSeconds(): number
}

export function createRetryEstimate(clock: Clock): RetryEstimate {
  let averageGapMs: number | null = null
  let lastEndMs: number | null = null
  return {
    finished() {
      const nowMs = clock.now().getTime()
      if (lastEndMs !== null) {
        const gapMs = Math.max(0, nowMs - lastEndMs)
        averageGapMs = averageGapMs === null ? gapMs : averageGapMs + NEWEST_SHARE * (gapMs - averageGapMs)
      }
      lastEndMs = nowMs
    },
    retryAfterSeconds() {
      if (averageGapMs === null) return DEFAULT_SECONDS
      return Math.min(MAX_SECONDS, Math.max(1, Math.ceil(averageGapMs / 1000)))
    },
  }
}
