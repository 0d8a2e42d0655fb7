/**
 * The periods of budgets. Calendar periods begin where they do in a place: a day where the local date changes, a week on Monday, a month
 * on its first day, so that one has as many hours as it has there. Hours are those of UTC everywhere. They follow one another without a
 * gap. A rolling period is what lies behind a moment: an hour, a day, seven days or thirty.
 */
import { beginOfDay, type DateOf, openZone } from '../../../../lib/zoned-days.ts'

export const PERIOD_UNITS = ['hour', 'day', 'week', 'month'] as const
type PeriodUnit = (typeof PERIOD_UNITS)[number]

export interface BudgetPeriod {
  readonly unit: PeriodUnit
  readonly style: 'calendar' | 'rolling'
  /** An IANA name. */
  readonly timeZone: string
}

/** Milliseconds since 1970; `until` is no longer in it. */
interface Span {
  readonly from: number
  readonly until: number
}

const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const LENGTH_MS: Readonly<Record<PeriodUnit, number>> = {
  hour: HOUR_MS,
  day: DAY_MS,
  week: 7 * DAY_MS,
  month: 30 * DAY_MS,
}
// So many parts of a rolling period leave it one after the other.
const PARTS = 60

export function lengthOf({ unit }: Pick<BudgetPeriod, 'unit'>): number {
  return LENGTH_MS[unit]
}

export function partOf(period: Pick<BudgetPeriod, 'unit'>): number {
  return LENGTH_MS[period.unit] / PARTS
}

/** The calendar period that a moment lies in. */
export function spanAt({ unit, timeZone }: Pick<BudgetPeriod, 'unit' | 'timeZone'>, at: number): Span {
  if (unit === 'hour') {
    const from = Math.floor(at / HOUR_MS) * HOUR_MS
    return { from, until: from + HOUR_MS }
  }
  const dateOf = openZone(timeZone)
  if (dateOf === null) throw new Error(`There is no time zone ${timeZone}.`)
  const first = FIRST_DATE[unit](dateOf(new Date(at)))
  const from = beginOf(first, dateOf)
  // A period that the zone left out whole is none: the next one begins where it would have ended.
  for (let date = NEXT_DATE[unit](first); ; date = NEXT_DATE[unit](date)) {
    const until = beginOf(date, dateOf)
    if (until > at) return { from, until }
  }
}

function beginOf(date: string, dateOf: DateOf): number {
  return beginOfDay(date, dateOf).getTime()
}

type DayUnit = Exclude<PeriodUnit, 'hour'>
type ToDate = (date: string) => string

const addDays = (date: string, days: number) =>
  new Date(Date.parse(`${date}T00:00:00Z`) + days * DAY_MS).toISOString().slice(0, 10)

const FIRST_DATE: Readonly<Record<DayUnit, ToDate>> = {
  day: (date) => date,
  week: (date) => addDays(date, -((new Date(`${date}T00:00:00Z`).getUTCDay() + 6) % 7)),
  month: (date) => `${date.slice(0, 7)}-01`,
}

const NEXT_DATE: Readonly<Record<DayUnit, ToDate>> = {
  day: (date) => addDays(date, 1),
  week: (date) => addDays(date, 7),
  // Any day of the next month, and then its first.
  month: (date) => `${addDays(date, 31).slice(0, 7)}-01`,
}
