/**
 * How the service fared over the last day, as far as this process has looked: one value for every ten seconds, in memory. Every
 * process reads the whole service, so all show the same figures, each from its own start on.
 */
import type { Clock } from '../../../../lib/clock.ts'
import type { Micros } from '../../../../lib/text/usd.ts'
import type { JobStatus } from '../transitions.ts'

/** `queued` and `running` are how many there were at most; the others are what came to an end, and what was spent, in the time. */
export const SERIES_NAMES = ['queued', 'running', 'succeeded', 'failed', 'canceled', 'expired', 'spend'] as const
export type SeriesName = (typeof SERIES_NAMES)[number]

const IS_LEVEL: Readonly<Record<SeriesName, boolean>> = {
  ...{ queued: true, running: true, succeeded: false, failed: false, canceled: false, expired: false, spend: false },
}

export const SERIES_STEP_MS = 10_000
const KEPT = 8640
// After a longer pause of this process it is unknown when the remaining jobs ended.
const MAX_LOOKED_BACK_MS = 60_000

interface SeriesDeps {
  readonly countJobs: () => Promise<Readonly<Record<JobStatus, number>>>
  /** How many jobs came to each end in this time. */
  readonly countEnded: (from: Date, to: Date) => Promise<Readonly<Record<JobStatus, number>>>
  readonly spentBetween: (from: Date, to: Date) => Promise<Micros>
  readonly clock: Clock
}

interface SeriesQuery {
  readonly names: readonly SeriesName[]
  /** A multiple of ten seconds. */
  readonly stepMs: number
  readonly points: number
}

interface SeriesAnswer {
  /** When the first step begins. */
  readonly from: Date
  /** null: this process did not look then. */
  readonly values: Readonly<Record<string, readonly (number | null)[]>>
}

export interface ServiceSeries {
  /** Looks at the service, once in ten seconds; otherwise it does nothing. */
  look(): Promise<void>
  read(query: SeriesQuery): SeriesAnswer
}

export function createServiceSeries({ countJobs, countEnded, spentBetween, clock }: SeriesDeps): ServiceSeries {
  const kept = Object.fromEntries(
    SERIES_NAMES.map((name) => [name, new Float64Array(KEPT).fill(Number.NaN)]),
  ) as Record<SeriesName, Float64Array>
  let lastSlot = Number.NEGATIVE_INFINITY
  let lookedAt: Date | null = null

  /** Whatever stood there is a day old. */
  function clearUpTo(slot: number): void {
    for (let each = Math.max(lastSlot + 1, slot - KEPT + 1); each <= slot; each += 1)
      for (const name of SERIES_NAMES) kept[name][each % KEPT] = Number.NaN
    lastSlot = slot
  }

  function at(name: SeriesName, slot: number): number {
    return slot > lastSlot || slot <= lastSlot - KEPT || slot < 0 ? Number.NaN : (kept[name][slot % KEPT] ?? Number.NaN)
  }

  /** Levels count as they were at most; the rest adds up. */
  function gather(name: SeriesName, firstSlot: number, slots: number): number | null {
    const seen = Array.from({ length: slots }, (_, index) => at(name, firstSlot + index)).filter(
      (value) => !Number.isNaN(value),
    )
    if (seen.length === 0) return null
    return IS_LEVEL[name] ? Math.max(...seen) : seen.reduce((sum, value) => sum + value, 0)
  }

  return {
    async look() {
      const to = clock.now()
      const slot = Math.floor(to.getTime() / SERIES_STEP_MS)
      if (slot <= lastSlot) return
      const earliest = to.getTime() - MAX_LOOKED_BACK_MS
      const from =
        lookedAt === null || lookedAt.getTime() < earliest ? new Date(to.getTime() - SERIES_STEP_MS) : lookedAt
      const [now, ended, spend] = await Promise.all([countJobs(), countEnded(from, to), spentBetween(from, to)])
      clearUpTo(slot)
      lookedAt = to
      const { succeeded, failed, canceled, expired } = ended
      const values = {
        queued: now.queued,
        running: now.running + now.canceling,
        succeeded,
        failed,
        canceled,
        expired,
        spend,
      }
      for (const name of SERIES_NAMES) kept[name][slot % KEPT] = values[name]
    },
    read({ names, stepMs, points }) {
      const slots = stepMs / SERIES_STEP_MS
      const lastStep = Math.floor(clock.now().getTime() / stepMs)
      const firstSlot = (lastStep - points + 1) * slots
      const values = names.map((name) => [
        name,
        Array.from({ length: points }, (_, index) => gather(name, firstSlot + index * slots, slots)),
      ])
      return { from: new Date(firstSlot * SERIES_STEP_MS), values: Object.fromEntries(values) }
    },
  }
}
