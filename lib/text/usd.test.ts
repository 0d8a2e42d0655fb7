import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { MAX_MICROS, readUsd, writeUsd } from './usd.ts'

test('dollars are read exactly or not at all', () => {
  assert.deepEqual(
    ['12.5', '0.000001', '-3', '0', '999999999'].map(readUsd),
    [12_500_000, 1, -3_000_000, 0, 999_999_999e6],
  )
  for (const wrong of ['', '1.', '.5', '1e3', '1,5', ' 1', '0.0000001', '1234567890', '+1', '--1', 'NaN']) {
    assert.equal(readUsd(wrong), null, wrong)
  }
})

test('a written amount reads back as the same amount', () => {
  assert.deepEqual([12_500_000, 1, -3_000_000, 0, 100].map(writeUsd), ['12.50', '0.000001', '-3.00', '0.00', '0.0001'])
  fc.assert(
    fc.property(fc.integer({ min: -MAX_MICROS + 1, max: MAX_MICROS - 1 }), (micros) => {
      assert.equal(readUsd(writeUsd(micros)), micros)
    }),
  )
})
