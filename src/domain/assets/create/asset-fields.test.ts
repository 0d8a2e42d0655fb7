import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../errors.ts'
import { readContentType, readExpiry, readTags } from './asset-fields.ts'

const refused = (error: unknown) => error instanceof ServiceError && error.refusal === 'invalid_field'
const now = new Date('2026-01-01T00:00:00.000Z')

test('a lifetime of 60 to 604800 whole seconds is allowed, anything else refused', () => {
  assert.deepEqual(readExpiry(60, { now, defaultMs: null }), new Date('2026-01-01T00:01:00.000Z'))
  assert.deepEqual(readExpiry(604_800, { now, defaultMs: 5 }), new Date('2026-01-08T00:00:00.000Z'))
  for (const seconds of [59, 604_801, 60.5, -60, Number.NaN, Number.POSITIVE_INFINITY]) {
    assert.throws(() => readExpiry(seconds, { now, defaultMs: null }), refused)
  }
})

test('an asset without a lifetime of its own gets the default, which may be for ever', () => {
  assert.equal(readExpiry(null, { now, defaultMs: null }), null)
  assert.deepEqual(readExpiry(null, { now, defaultMs: 1000 }), new Date('2026-01-01T00:00:01.000Z'))
})

test('tags are a bounded set of bounded texts', () => {
  assert.deepEqual(readTags(['b', 'a', 'b']), ['a', 'b'])
  assert.equal(readTags(Array.from({ length: 32 }, (_, index) => `${index}`)).length, 32)
  assert.throws(() => readTags(Array.from({ length: 33 }, (_, index) => `${index}`)), refused)
  for (const tag of ['', 'x'.repeat(129), 'a\nb']) assert.throws(() => readTags([tag]), refused)
})

test('a content type must be a media type', () => {
  assert.equal(readContentType('image/png'), 'image/png')
  for (const text of ['', 'png', 'image/png\r\nX: y']) assert.throws(() => readContentType(text), refused)
})
