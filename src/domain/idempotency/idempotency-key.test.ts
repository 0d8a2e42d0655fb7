import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../errors.ts'
import { readIdempotencyKey } from './idempotency-key.ts'

const refused = (error: unknown) => error instanceof ServiceError && error.refusal === 'invalid_request'

test('a request without the header has no key', () => {
  assert.equal(readIdempotencyKey(undefined), null)
  assert.equal(readIdempotencyKey([]), null)
})

test('1 to 255 characters are a key, as they are', () => {
  for (const key of ['a', 'k'.repeat(255), 'with space, comma and ü']) {
    assert.equal(readIdempotencyKey(key), key)
    assert.equal(readIdempotencyKey([key]), key)
  }
})

test('an empty, over-long or repeated key and control characters are refused', () => {
  for (const header of ['', '  ', 'k'.repeat(256), ['a', 'a'], 'a\tb', 'a\u007fb', 'a\u0000']) {
    assert.throws(() => readIdempotencyKey(header), refused)
  }
})
