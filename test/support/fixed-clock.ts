import type { Clock } from '../../lib/clock.ts'

export interface FixedClock extends Clock {
  advance(ms: number): void
  set(now: Date): void
}

/** Stands still until it is moved. */
export function createFixedClock(start = new Date('2026-01-01T00:00:00.000Z')): FixedClock {
  let nowMs = start.getTime()
  return {
    now: () => new Date(nowMs),
    advance(ms) {
      nowMs += ms
    },
    set(now) {
      nowMs = now.getTime()
    },
  }
}
