import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../errors.ts'
import { keyReuse, readIdempotencyKey, toKeyClaim } from './idempotency-key.ts'

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

test('a key is claimed for 24 hours', () => {
  const now = new Date('2026-01-01T00:00:00Z')
  assert.deepEqual(toKeyClaim('k', now), { key: 'k', claimedAt: now, expiresAt: new Date('2026-01-02T00:00:00Z') })
  assert.equal(toKeyClaim(null, now), null)
})

test('a key that was used is refused with what its first use has made', () => {
  const made = { jobId: 'j', assetId: null }
  assert.deepEqual([keyReuse(made).refusal, keyReuse(made).details], ['idempotency_key_reuse', { jobId: 'j' }])
  assert.deepEqual(keyReuse({ jobId: null, assetId: 'a' }).details, { assetId: 'a' })
  assert.deepEqual(keyReuse({ jobId: null, assetId: null, batchId: 'b' }).details, { batchId: 'b' })
})
