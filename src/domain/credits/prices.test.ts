import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../errors.ts'
import { readPrices } from './prices.ts'

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

test('what is wrong is named', () => {
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
