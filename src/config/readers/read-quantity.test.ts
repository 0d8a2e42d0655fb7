import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { readBytes, readCount, readDurationMs, toDurationText, toSizeText } from './read-quantity.ts'

const anything = { min: 0, max: Number.MAX_SAFE_INTEGER }

test('durations need a unit and are exact', () => {
  const read = readDurationMs(anything)
  assert.equal(read('7d'), 604_800_000)
  assert.equal(read('24h'), 86_400_000)
  assert.equal(read('90s'), 90_000)
  assert.equal(read('5m'), 300_000)
  assert.equal(read('250ms'), 250)
  for (const bad of ['', '7', 'd', '1.5h', '-1s', '1 d', '1w', '7D', '1e3s'])
    assert.throws(() => read(bad), /not a duration/, bad)
})

test('sizes know powers of 1024 and of 1000, in any case', () => {
  const read = readBytes(anything)
  assert.equal(read('10GiB'), 10 * 2 ** 30)
  assert.equal(read('10gb'), 10e9)
  assert.equal(read('1.5 MiB'), 1_572_864)
  assert.equal(read('0B'), 0)
  for (const bad of ['', '10', 'GiB', '10Gi', '-1B', '1e3B', '10 GiB extra'])
    assert.throws(() => read(bad), /not a size/, bad)
})

test('an error names the bounds with units', () => {
  assert.throws(() => readDurationMs({ min: 60_000, max: 86_400_000 })('1s'), /between 1m and 1d/)
  assert.throws(() => readBytes({ min: 1024, max: 2 ** 30 })('2GiB'), /between 1KiB and 1GiB/)
  assert.throws(() => readCount({ min: 0, max: 65_535 })('65536'), /from 0 to 65535/)
})

test('the text of a quantity reads back as the same quantity', () => {
  fc.assert(
    fc.property(fc.nat(2_000_000_000), (value) => {
      assert.equal(readDurationMs(anything)(toDurationText(value)), value)
      assert.equal(readBytes(anything)(toSizeText(value)), value)
    }),
  )
})
