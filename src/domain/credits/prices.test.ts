import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_MICROS } from '../../../lib/text/usd.ts'
import { ServiceError } from '../errors.ts'
import { priceOfTime, readPrices } from './prices.ts'

test('a pool has its own price, else the common one; what costs nothing has none', () => {
  const prices = readPrices({
    pools: {
      '*': { perSecondMicros: 100, minimumMicros: 50 },
      gpu: { perSecondMicros: 900, holdMicros: 5 },
      cpu: { perSecondMicros: 0 },
    },
  })
  assert.deepEqual(prices.priceOf('default'), { perSecondMicros: 100, minimumMicros: 50, holdMicros: 6000 })
  assert.deepEqual(prices.priceOf('gpu'), { perSecondMicros: 900, minimumMicros: 0, holdMicros: 5 })
  assert.equal(prices.priceOf('cpu'), null)
  assert.equal(readPrices({}).priceOf('default'), null)
})

test('time costs the exact product, rounded up once', () => {
  assert.deepEqual(
    [9066, 0, 1, 1000, -5].map((durationMs) => priceOfTime(95_000, durationMs)),
    [861_270, 0, 95, 95_000, 0],
  )
  assert.equal(priceOfTime(333, 1), 1)
  const perSecond = fc.oneof(fc.integer({ min: 0, max: 1_000_000 }), fc.integer({ min: 0, max: 1_000_000_000 }))
  const duration = fc.oneof(fc.integer({ min: 0, max: 100_000 }), fc.integer({ min: 0, max: 10_000_000_000_000 }))
  fc.assert(
    fc.property(perSecond, duration, (perSecondMicros, durationMs) => {
      const exact = (BigInt(perSecondMicros) * BigInt(durationMs) + 999n) / 1000n
      const expected = exact > BigInt(MAX_MICROS) ? MAX_MICROS : Number(exact)
      assert.equal(priceOfTime(perSecondMicros, durationMs), expected)
    }),
    { seed: 20_261_115, numRuns: 20_000 },
  )
})

test('a refusal names the field that is wrong', () => {
  const cases: readonly [unknown, RegExp][] = [
    [[], /^prices must be an object/],
    [{ pool: {} }, /^prices has the unknown key "pool"; use pools/],
    [{ pools: { a: { perSecondMicros: 0.5 } } }, /^a\.perSecondMicros must be a whole number/],
    [{ pools: { a: {} } }, /^a\.perSecondMicros must be/],
    [{ pools: { a: { perSecondMicros: 1, hold: 1 } } }, /^a has the unknown key "hold"/],
    [{ pools: { a: { perSecondMicros: 1, minimumMicros: -1 } } }, /^a\.minimumMicros must be/],
  ]
  for (const [value, pattern] of cases) {
    assert.throws(
      () => readPrices(value),
      (error) => error instanceof ServiceError && pattern.test(error.message),
    )
  }
})
