import assert from 'node:assert/strict'
import { test } from 'node:test'
import { drawnCases } from '../test/support/drawn-cases.ts'
import { seededRandom } from '../test/support/seeded-random.ts'
import { type Cron, lastTime, nextTime, readCron } from './cron.ts'
import { openWallClock, type WallClock } from './wall-clock.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

function mustRead(text: string): Cron {
  const cron = readCron(text)
  if (typeof cron === 'string') throw new Error(cron)
  return cron
}

function mustOpen(timeZone: string): WallClock {
  const clock = openWallClock(timeZone)
  if (clock === null) throw new Error(`there is no zone ${timeZone}`)
  return clock
}

function times(text: string, zone: string, after: string, count: number): string[] {
  const [cron, clock] = [mustRead(text), mustOpen(zone)]
  const found: Date[] = []
  for (let at = new Date(after); found.length < count; ) {
    at = nextTime(cron, clock, at)
    found.push(at)
  }
  return found.map((at) => at.toISOString().slice(0, 16))
}

test('numbers, ranges, steps, lists, names and short forms are understood', () => {
  assert.deepEqual(times('30 6 * * *', 'UTC', '2026-01-01T00:00Z', 2), ['2026-01-01T06:30', '2026-01-02T06:30'])
  assert.deepEqual(mustRead('*/20,5 0-6/3 * * *').minutes, [0, 5, 20, 40])
  assert.deepEqual(mustRead('*/20,5 0-6/3 * * *').hours, [0, 3, 6])
  assert.deepEqual(mustRead('50/5 1 * * *').minutes, [50, 55])
  assert.deepEqual([...mustRead('0 0 1 JAN,mar-may *').months], [1, 3, 4, 5])
  assert.deepEqual([...mustRead('0 0 * * mon-fri').weekdays], [1, 2, 3, 4, 5])
  assert.deepEqual([...mustRead('0 0 * * 7').weekdays], [0])
  assert.deepEqual(times(' @Weekly ', 'UTC', '2026-01-01T00:00Z', 1), ['2026-01-04T00:00'])
  // 2026-02-13 is a Friday; with both days given either suffices, and with a star both must hold.
  assert.deepEqual(times('0 0 13 * 5', 'UTC', '2026-02-12T00:00Z', 2), ['2026-02-13T00:00', '2026-02-20T00:00'])
  assert.deepEqual(times('0 0 */2 * mon', 'UTC', '2026-01-01T00:00Z', 2), ['2026-01-05T00:00', '2026-01-19T00:00'])
  assert.deepEqual(times('0 0 29 2 *', 'UTC', '2096-03-01T00:00Z', 1), ['2104-02-29T00:00'])
})

test('what is wrong is told with the part and what may stand there', () => {
  const wrong: Readonly<Record<string, RegExp>> = {
    '': /^must have five fields/,
    '* * * *': /^must have five fields/,
    '0 * * * * *': /^must have five fields/,
    '@sometimes': /^must have five fields/,
    '60 * * * *': /^has "60" as the minute, where numbers from 0 to 59/,
    '0 24 * * *': /^has "24" as the hour/,
    '0 0 0 * *': /^has "0" as the day of the month/,
    '0 0 * 13 *': /^has "13" as the month, where numbers from 1 to 12, or jan to dec/,
    '0 0 * * 8': /^has "8" as the day of the week/,
    '0 0 * * someday': /^has "someday" as the day of the week/,
    '5-1 * * * *': /^has "5-1" as the minute/,
    '*/0 * * * *': /^has "\*\/0" as the minute/,
    '*/60 * * * *': /^has "\*\/60" as the minute/,
    '1-2-3 * * * *': /^has "1-2-3" as the minute/,
    '1/2/3 * * * *': /^has "1\/2\/3" as the minute/,
    '1,,2 * * * *': /^has "" as the minute/,
    '-1 * * * *': /^has "-1" as the minute/,
    '1.5 * * * *': /^has "1.5" as the minute/,
    '* * L * *': /^has "l" as the day of the month/,
    '0 0 30 2 *': /^names a day that never comes/,
    '0 0 31 4,6,9,11 *': /^names a day that never comes/,
    [`${'1,'.repeat(100)}1 * * * *`]: /^must have at most 200 characters/,
  }
  for (const [text, message] of Object.entries(wrong)) assert.match(String(readCron(text)), message, text)
})

test('a time that clocks skip comes at the first moment afterwards, once; one shown twice comes the first time', () => {
  // Berlin skips 02:00 to 03:00 on 29 March 2026 and has it twice on 25 October.
  assert.deepEqual(times('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', 2), [
    '2026-03-29T01:00',
    '2026-03-30T00:30',
  ])
  assert.deepEqual(times('*/20 2 * * *', 'Europe/Berlin', '2026-03-28T12:00Z', 2), [
    '2026-03-29T01:00',
    '2026-03-30T00:00',
  ])
  assert.deepEqual(times('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00Z', 2), [
    '2026-10-25T00:30',
    '2026-10-26T01:30',
  ])
  // Samoa left out 30 December 2011.
  assert.deepEqual(times('0 9 30 * *', 'Pacific/Apia', '2011-12-01T00:00Z', 1), ['2011-12-30T10:00'])
})

test('with every hour given, times go by as if clocks were never changed', () => {
  const spring = ['2026-03-29T00:30', '2026-03-29T01:30', '2026-03-29T02:30']
  assert.deepEqual(times('30 * * * *', 'Europe/Berlin', '2026-03-29T00:00Z', 3), spring)
  const autumn = ['2026-10-24T23:30', '2026-10-25T00:30', '2026-10-25T01:30', '2026-10-25T02:30']
  assert.deepEqual(times('30 * * * *', 'Europe/Berlin', '2026-10-24T23:00Z', 4), autumn)
  // Lord Howe changes by half an hour.
  const howe = ['2026-04-04T14:45', '2026-04-04T15:15', '2026-04-04T16:15']
  assert.deepEqual(times('45 * * * *', 'Australia/Lord_Howe', '2026-04-04T14:16Z', 3), howe)
})

test('there is no zone of another name', () => {
  for (const name of ['', 'Europe/Atlantis', 'local', 'CEST']) assert.equal(openWallClock(name), null, name)
  assert.equal(openWallClock('europe/berlin')?.timeZone, 'Europe/Berlin')
})

// Each with a moment near which its clocks change.
const CHANGES = [
  ['Europe/Berlin', '2026-03-29T01:00Z'],
  ['Europe/Berlin', '2026-10-25T01:00Z'],
  ['America/New_York', '2026-11-01T06:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T15:30Z'],
  // At midnight, in both directions.
  ['America/Havana', '2026-03-08T05:00Z'],
  ['America/Havana', '2026-11-01T05:00Z'],
  ['America/St_Johns', '2010-11-07T02:31Z'],
  ['Africa/Cairo', '2026-10-29T21:00Z'],
  ['Pacific/Apia', '2011-12-30T10:00Z'],
  ['Asia/Kathmandu', '2026-05-05T00:00Z'],
] as const

/** Goes through the minutes of two days one by one. */
function timesByLooking(cron: Cron, { toLocal }: WallClock, from: number, to: number): number[] {
  const isOn = (local: number) => {
    const date = new Date(local)
    const [isDay, isWeekday] = [cron.days.has(date.getUTCDate()), cron.weekdays.has(date.getUTCDay())]
    const isOnDay = cron.isAnyDay || cron.isAnyWeekday ? isDay && isWeekday : isDay || isWeekday
    const isOnTime = cron.minutes.includes(date.getUTCMinutes()) && cron.hours.includes(date.getUTCHours())
    return isOnDay && isOnTime && cron.months.has(date.getUTCMonth() + 1)
  }
  const found: number[] = []
  // Before the window there may be a time that is shown again within it.
  let shown = toLocal(from - 48 * HOUR_MS)
  for (let at = from - 48 * HOUR_MS + MINUTE_MS; at <= to; at += MINUTE_MS) {
    const local = toLocal(at)
    const isTime = cron.hours.length === 24 ? isOn(local) : local > shown && hasTime(isOn, shown, local)
    shown = Math.max(shown, local)
    if (isTime && at > from) found.push(at)
  }
  return found
}

function hasTime(isOn: (local: number) => boolean, after: number, to: number): boolean {
  for (let local = after + MINUTE_MS; local <= to; local += MINUTE_MS) if (isOn(local)) return true
  return false
}

test('near changes of the clocks, times are what looking at every minute finds', () => {
  const random = seededRandom(40)
  const part = (to: number) =>
    random.pick(['*', '*', '*/2', String(random.between(0, to)), `0-${random.between(0, to)}`])
  for (let drawn = 0; drawn < drawnCases(30); drawn += 1) {
    const [zone, around] = random.pick(CHANGES)
    const text = [
      random.pick(['0', '30', '*/15', '59', String(random.between(0, 60))]),
      random.pick(['*', '*', '2', '0', '23', '1-3', '0,23', part(23)]),
      random.pick(['*', '*', '*', '1-15', '29-31']),
      '*',
      random.pick(['*', '*', '*', '0', '1-5']),
    ].join(' ')
    const [cron, clock] = [mustRead(text), mustOpen(zone)]
    const from = Date.parse(around) - 26 * HOUR_MS + random.between(0, 60) * MINUTE_MS
    const to = from + 52 * HOUR_MS
    const expected = timesByLooking(cron, clock, from, to)
    const found: number[] = []
    for (let at = nextTime(cron, clock, new Date(from)); at.getTime() <= to; at = nextTime(cron, clock, at))
      found.push(at.getTime())
    assert.deepEqual(found, expected, `"${text}" in ${zone} around ${around}`)
    if (expected.length === 0) continue
    const until = new Date(from + random.between(0, 52 * 60) * MINUTE_MS)
    const past = expected.filter((at) => at <= until.getTime())
    if (past.length > 0)
      assert.equal(lastTime(cron, clock, new Date(past[0]), until).getTime(), past.at(-1), `the last of "${text}"`)
  }
})

test('a day of the month on a day of the week is found however many years it is away', () => {
  // With a star in one of the two both must hold. 1 May is a Friday in 2026 and then in 2037; 29 February a Sunday in 2032, 2060, 2088 and 2128.
  assert.deepEqual(times('0 0 */31 5 fri', 'UTC', '2026-05-02T00:00Z', 1), ['2037-05-01T00:00'])
  assert.deepEqual(times('0 0 29 2 */7', 'UTC', '2026-01-01T00:00Z', 4), [
    '2032-02-29T00:00',
    '2060-02-29T00:00',
    '2088-02-29T00:00',
    '2128-02-29T00:00',
  ])
  const last = lastTime(
    mustRead('0 0 29 2 */7'),
    mustOpen('UTC'),
    new Date('2032-02-29T00:00Z'),
    new Date('2100-01-01T00:00Z'),
  )
  assert.equal(last.toISOString(), '2088-02-29T00:00:00.000Z')
})

test('the last time of a schedule that stood still for years is found at once', () => {
  const last = lastTime(
    mustRead('* * * * *'),
    mustOpen('UTC'),
    new Date('2000-01-01T00:00Z'),
    new Date('2026-05-05T05:05:30Z'),
  )
  assert.equal(last.toISOString(), '2026-05-05T05:05:00.000Z')
})
