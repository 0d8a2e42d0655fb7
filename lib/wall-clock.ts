/**
 * The clocks on the walls of a place. Local times are milliseconds too: as many as UTC would have when it shows the same date and time.
 * Where clocks are set forward some local times never come, and where they are set back some come twice.
 */
const DAY_MS = 86_400_000

export interface WallClock {
  /** As the time zone database writes the name. */
  readonly timeZone: string
  /** What the clocks show at a moment, to the second. */
  toLocal(at: number): number
  /** When they show it: once as a rule, twice where they are set back; where they skip it, the first moment afterwards. */
  toMoments(local: number): LocalMoments
}

interface LocalMoments {
  readonly first: number
  readonly last: number
  readonly isSkipped: boolean
}

/** null: there is no such zone. */
export function openWallClock(timeZone: string): WallClock | null {
  const format = openFormat(timeZone)
  if (format === null) return null
  const toLocal = (at: number) => Date.parse(`${format.format(at).replace(' ', 'T')}Z`)
  const offsetAt = (at: number) => toLocal(at) - Math.floor(at / 1000) * 1000

  function toMoments(local: number): LocalMoments {
    // No place is further than a day from UTC, and none sets its clocks twice within two days.
    const [before, after] = [offsetAt(local - DAY_MS), offsetAt(local + DAY_MS)]
    const found = [local - before, local - after].filter((at) => toLocal(at) === local)
    if (found.length > 0) return { first: Math.min(...found), last: Math.max(...found), isSkipped: false }
    const at = findChange(local - DAY_MS, local + DAY_MS)
    return { first: at, last: at, isSkipped: true }
  }

  /** The first second whose offset is no longer that of `from`. */
  function findChange(from: number, to: number): number {
    const offset = offsetAt(from)
    let [before, changed] = [from / 1000, to / 1000]
    while (changed - before > 1) {
      const middle = Math.floor((before + changed) / 2)
      if (offsetAt(middle * 1000) === offset) before = middle
      else changed = middle
    }
    return changed * 1000
  }

  return { timeZone: format.resolvedOptions().timeZone, toLocal, toMoments }
}

function openFormat(timeZone: string): Intl.DateTimeFormat | null {
  try {
    // The only locale that writes 2026-01-31 23:59:59.
    const time = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' } as const
    return new Intl.DateTimeFormat('sv-SE', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit', ...time })
  } catch {
    return null
  }
}
