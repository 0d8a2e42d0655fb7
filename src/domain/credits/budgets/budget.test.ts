import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addSpend, type Budget, correctSpend, countsAt, heldAtFor, NO_COUNTS, spentOf } from './budget.ts'
import { lengthOf, PERIOD_UNITS, partOf, spanAt } from './periods.ts'

const ZONES = [
  ...['UTC', 'Europe/Berlin', 'America/New_York', 'Asia/Kathmandu', 'Australia/Lord_Howe', 'Pacific/Apia'],
  // Its clocks change at midnight, so that some days begin at one.
  ...['America/Sao_Paulo', 'Africa/Cairo', 'Pacific/Kiritimati', 'America/St_Johns'],
]
const unit = fc.constantFrom(...PERIOD_UNITS)
const timeZone = fc.constantFrom(...ZONES)
// From 1990 to 2040, milliseconds included.
const instant = fc.integer({ min: Date.UTC(1990, 0), max: Date.UTC(2040, 0) })

function localDate(timeZone: string, at: number): string {
  return new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short' }).format(at)
}

test('calendar periods hold their moment, follow one another without a gap, and begin with the local day', () => {
  fc.assert(
    fc.property(unit, timeZone, instant, (unit, timeZone, at) => {
      const period = { unit, timeZone }
      const { from, until } = spanAt(period, at)
      assert.ok(from <= at && at < until)
      assert.deepEqual(spanAt(period, from), { from, until })
      assert.deepEqual(spanAt(period, until - 1), { from, until })
      assert.equal(spanAt(period, until).from, until)
      if (unit === 'hour') return
      const first = localDate(timeZone, from)
      assert.notEqual(localDate(timeZone, from - 1), first)
      if (unit === 'week') assert.equal(new Date(`${first}T00:00:00Z`).getUTCDay(), 1)
      if (unit === 'month') assert.equal(first.slice(8), '01')
    }),
    { numRuns: 400 },
  )
})

interface Step {
  readonly afterMs: number
  readonly micros: number
  /** Of what was held, how much is charged in the end, and how long after. */
  readonly share: number
  readonly lastsMs: number
}

const step: fc.Arbitrary<Step> = fc.record({
  // A clock may go back a little.
  afterMs: fc.integer({ min: -2000, max: 9_000_000 }),
  micros: fc.integer({ min: 0, max: 1_000_000 }),
  share: fc.constantFrom(0, 0.25, 1, 1.5),
  lastsMs: fc.integer({ min: 0, max: 5_000_000 }),
})

test('what is counted is what was held or charged in the period, whatever came in which order', () => {
  fc.assert(
    fc.property(
      unit,
      timeZone,
      fc.constantFrom('calendar', 'rolling'),
      instant,
      fc.array(step, { maxLength: 25 }),
      (unit, timeZone, style, start, steps) => {
        const period = { unit, timeZone, style } as const
        let budget = { ...period, counts: NO_COUNTS, createdAt: new Date(start) } as Budget
        const known: { readonly heldAt: number; micros: number }[] = []
        const ends: { readonly at: number; readonly of: (typeof known)[number]; readonly charged: number }[] = []
        let now = start
        const settleUntil = (until: number) => {
          for (const end of ends.splice(0).toSorted((one, other) => one.at - other.at)) {
            if (end.at > until) {
              ends.push(end)
              continue
            }
            const change = end.charged - end.of.micros
            budget = { ...budget, counts: correctSpend(budget, { heldAt: end.of.heldAt, at: end.at, change }) }
            end.of.micros = end.charged
          }
        }
        for (const { afterMs, micros, share, lastsMs } of steps) {
          now += afterMs
          settleUntil(now)
          const heldAt = heldAtFor({ counts: countsAt(budget, budget.counts, now) }, now)
          budget = { ...budget, counts: addSpend(budget, budget.counts, heldAt, micros) }
          const of = { heldAt, micros }
          known.push(of)
          ends.push({ at: now + lastsMs, of, charged: Math.round(micros * share) })
          check(budget, known, heldAt)
        }
        settleUntil(Number.POSITIVE_INFINITY)
      },
    ),
    { numRuns: 300 },
  )
})

function check(budget: Budget, known: readonly { readonly heldAt: number; readonly micros: number }[], at: number) {
  const counts = countsAt(budget, budget.counts, at)
  const within = (from: number) =>
    known.filter(({ heldAt }) => heldAt >= from).reduce((sum, { micros }) => sum + micros, 0)
  if (budget.style === 'calendar') {
    assert.equal(spentOf(counts), within(counts.from))
    return
  }
  // Never less than what lies in the period, and of older only what shares a part with it.
  const from = at - lengthOf(budget)
  assert.ok(spentOf(counts) >= within(from + 1))
  assert.ok(spentOf(counts) <= within(from - 2 * partOf(budget)))
  assert.ok(counts.parts.length <= 62)
}
