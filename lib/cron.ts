/**
 * The five fields of cron, and when they come next. Days follow cron's own rule: where both the day of the month and the day of the week
 * are given, either suffices.
 *
 * Times are those of the clocks on the wall. One that clocks skip comes at the first moment afterwards, and one that they show twice comes
 * the first time only. Where every hour is given, times go by without regard to that: they come in each hour that there is.
 */
import type { WallClock } from './wall-clock.ts'

export interface Cron {
  readonly minutes: readonly number[]
  readonly hours: readonly number[]
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  /** 0 is Sunday. */
  readonly weekdays: ReadonlySet<number>
  readonly isAnyDay: boolean
  readonly isAnyWeekday: boolean
}

interface Field {
  readonly name: string
  readonly from: number
  readonly to: number
  /** What may stand for the numbers, beginning with that of `from`. */
  readonly words: readonly string[]
}

const MAX_LENGTH = 200
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec']
const FIELDS: readonly Field[] = [
  { name: 'the minute', from: 0, to: 59, words: [] },
  { name: 'the hour', from: 0, to: 23, words: [] },
  { name: 'the day of the month', from: 1, to: 31, words: [] },
  { name: 'the month', from: 1, to: 12, words: MONTHS },
  { name: 'the day of the week', from: 0, to: 7, words: ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'] },
]
const SHORT: Readonly<Record<string, string | undefined>> = {
  '@hourly': '0 * * * *',
  '@daily': '0 0 * * *',
  '@weekly': '0 0 * * 0',
  '@monthly': '0 0 1 * *',
  '@yearly': '0 0 1 1 *',
}

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const DAY_MS = 86_400_000
const HOURS = 24
// 29 February on one day of the week may be forty years away, around a year such as 2100, and nothing that ever comes is further.
const SEARCH_DAYS = 41 * 366

/** What is wrong with the text, as a phrase that follows the field's name; or what it says. */
export function readCron(text: string): Cron | string {
  if (text.length > MAX_LENGTH) return `must have at most ${MAX_LENGTH} characters`
  const parts = (SHORT[text.trim().toLowerCase()] ?? text).trim().split(/\s+/)
  if (parts.length !== FIELDS.length)
    return 'must have five fields: minute, hour, day of the month, month, day of the week; or be one of @hourly, @daily, @weekly, @monthly, @yearly'
  const sets: ReadonlySet<number>[] = []
  for (const [index, field] of FIELDS.entries()) {
    const read = readField(parts[index].toLowerCase(), field)
    if (typeof read === 'string') return read
    sets.push(read)
  }
  const [minutes, hours, days, months, weekdays] = sets
  const ascending = (set: ReadonlySet<number>) => [...set].toSorted((one, other) => one - other)
  const cron = {
    ...{ minutes: ascending(minutes), hours: ascending(hours), days, months },
    weekdays: new Set([...weekdays].map((day) => day % 7)),
    isAnyDay: parts[2].startsWith('*'),
    isAnyWeekday: parts[4].startsWith('*'),
  }
  return comesEver(cron) ? cron : 'names a day that never comes'
}

function readField(text: string, field: Field): ReadonlySet<number> | string {
  const values = new Set<number>()
  for (const item of text.split(',')) {
    const [range, step, ...rest] = item.split('/')
    const every = step === undefined ? 1 : readNumber(step)
    if (rest.length > 0 || every === null || every < 1 || every > field.to) return wrong(field, item)
    const ends = range === '*' ? [field.from, field.to] : range.split('-').map((end) => readValue(end, field))
    const [from, last] = ends
    // As cron has it: 5/15 goes on to the end of the field.
    const to = ends.length === 1 && step !== undefined ? field.to : (last ?? from)
    if (ends.length > 2 || from == null || to == null || ends.includes(null) || from > to) return wrong(field, item)
    for (let value = from; value <= to; value += every) values.add(value)
  }
  return values
}

function wrong({ name, from, to, words }: Field, item: string): string {
  const named = words.length > 0 ? `, or ${words[0]} to ${words.at(-1)}` : ''
  return `has ${JSON.stringify(item)} as ${name}, where numbers from ${from} to ${to}${named}, ranges (2-5), steps (*/2) and lists (1,3) may stand`
}

function readNumber(text: string): number | null {
  return /^\d{1,4}$/.test(text) ? Number(text) : null
}

function readValue(text: string, { from, to, words }: Field): number | null {
  const word = words.indexOf(text)
  const value = word === -1 ? readNumber(text) : from + word
  return value !== null && value >= from && value <= to ? value : null
}

function comesEver({ days, months, isAnyDay, isAnyWeekday }: Cron): boolean {
  if (isAnyDay || !isAnyWeekday) return true
  const longest = (month: number) => (month === 2 ? 29 : [4, 6, 9, 11].includes(month) ? 30 : 31)
  return [...months].some((month) => [...days].some((day) => day <= longest(month)))
}

/** The first time after the moment. */
export function nextTime(cron: Cron, clock: WallClock, after: Date): Date {
  const afterMs = after.getTime()
  const isEveryHour = cron.hours.length === HOURS
  // What is shown twice, or was skipped with a whole day, may still be ahead although the clocks show more.
  const first = Math.floor(clock.toLocal(afterMs) / DAY_MS) * DAY_MS - 2 * DAY_MS
  const nextOn = (day: number) => {
    if (!isOn(cron, day)) return null
    const times = cron.hours.flatMap((hour) => cron.minutes.map((minute) => day + hour * HOUR_MS + minute * MINUTE_MS))
    return isEveryHour ? nextOfAll(clock, times, afterMs) : nextOfFirst(clock, times, afterMs)
  }
  for (let day = first; day < first + SEARCH_DAYS * DAY_MS; day = nextDay(cron, day)) {
    const at = nextOn(day)
    // Where clocks are set back at midnight, the end of one day comes once more after the next one began.
    if (at !== null) return new Date(Math.min(at, nextOn(day + DAY_MS) ?? at))
  }
  throw new Error('what cron fields describe comes within forty years')
}

/** The day after, or the first of the next month where none of this one counts. */
function nextDay({ months }: Cron, day: number): number {
  const date = new Date(day)
  const month = date.getUTCMonth()
  return months.has(month + 1) ? day + DAY_MS : Date.UTC(date.getUTCFullYear(), month + 1, 1)
}

function isOn({ days, months, weekdays, isAnyDay, isAnyWeekday }: Cron, day: number): boolean {
  const date = new Date(day)
  if (!months.has(date.getUTCMonth() + 1)) return false
  const [isDay, isWeekday] = [days.has(date.getUTCDate()), weekdays.has(date.getUTCDay())]
  // A star with a step is still a star: both must hold then, as in cron.
  return isAnyDay || isAnyWeekday ? isDay && isWeekday : isDay || isWeekday
}

function nextOfFirst(clock: WallClock, times: readonly number[], after: number): number | null {
  const at = search(times, (local) => clock.toMoments(local).first > after)
  return at === times.length ? null : clock.toMoments(times[at]).first
}

function nextOfAll(clock: WallClock, times: readonly number[], after: number): number | null {
  const next = (pick: 'first' | 'last') => {
    for (let at = search(times, (local) => clock.toMoments(local)[pick] > after); at < times.length; at += 1) {
      const moments = clock.toMoments(times[at])
      if (!moments.isSkipped) return moments[pick]
    }
    return null
  }
  const [first, last] = [next('first'), next('last')]
  return first === null || last === null ? (first ?? last) : Math.min(first, last)
}

/** The first of ascending times that has it; all behind that one have it, too. */
function search(times: readonly number[], has: (local: number) => boolean): number {
  let [from, to] = [0, times.length]
  while (from < to) {
    const middle = Math.floor((from + to) / 2)
    if (has(times[middle])) to = middle
    else from = middle + 1
  }
  return from
}

/** The last time up to the moment, given one that is not behind it. */
export function lastTime(cron: Cron, clock: WallClock, known: Date, until: Date): Date {
  // Mostly it is asked for just after the time that is known.
  if (nextTime(cron, clock, known) > until) return known
  let [last, end] = [known.getTime(), until.getTime()]
  while (last < end) {
    const middle = Math.floor((last + end) / 2)
    const next = nextTime(cron, clock, new Date(middle)).getTime()
    if (next <= until.getTime()) last = next
    else end = middle
  }
  return new Date(last)
}
