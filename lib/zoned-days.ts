/**
 * Days as people in a place count them. A day begins where the local date changes, which is not always midnight, and has as many hours as
 * it has there. A zone that left out a date has no such day.
 */
const DAY_MS = 86_400_000

/** The local date of a moment, as 2026-01-31. */
export type DateOf = (at: Date) => string

/** null: there is no such zone. */
export function openZone(timeZone: string): DateOf | null {
  try {
    // The only locale whose dates are written year first, with dashes.
    const format = new Intl.DateTimeFormat('sv-SE', { timeZone, year: 'numeric', month: '2-digit', day: '2-digit' })
    return (at) => format.format(at)
  } catch {
    return null
  }
}

/** The first moment whose local date is this one or a later one. */
export function beginOfDay(date: string, dateOf: DateOf): Date {
  const noon = Date.parse(`${date}T12:00:00Z`)
  // Local dates are at most a day and two hours away from those of UTC. Days begin at whole minutes nearly everywhere, and at whole
  // seconds in all zones ever.
  let [before, begun] = [(noon - 2 * DAY_MS) / 1000, (noon + 2 * DAY_MS) / 1000]
  while (begun - before > 1) {
    const middle = Math.floor((before + begun) / 2)
    if (dateOf(new Date(middle * 1000)) < date) before = middle
    else begun = middle
  }
  return new Date(begun * 1000)
}

/** Where each local day between the two moments begins, the first one cut short by `from`; and at last `to`. */
export function toDayEdges(from: Date, to: Date, dateOf: DateOf): Date[] {
  const edges = [from]
  for (let date = nextDate(dateOf(from)); ; date = nextDate(date)) {
    const begin = beginOfDay(date, dateOf)
    if (begin >= to) break
    // A date that the zone left out begins where the next one does.
    if (begin > (edges.at(-1) ?? from)) edges.push(begin)
  }
  return [...edges, to]
}

function nextDate(date: string): string {
  return new Date(Date.parse(`${date}T00:00:00Z`) + DAY_MS).toISOString().slice(0, 10)
}
