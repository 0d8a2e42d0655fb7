import assert from 'node:assert/strict'
import { test } from 'node:test'
import { whyTooMuch } from './disk-quota.ts'

test('releases of an account may take so much, and a model that several of them have counts once', () => {
  const model = { sha256: 'a', sizeBytes: 100 }
  const held = [
    { releaseId: 'one', sizeBytes: 10, models: [model] },
    { releaseId: 'two', sizeBytes: 20, models: [model] },
  ]
  const more = { sizeBytes: 5, models: [model, { sha256: 'b', sizeBytes: 50 }] }
  assert.equal(whyTooMuch({ maxBytes: 185, held }, more), null)
  assert.match(
    whyTooMuch({ maxBytes: 184, held }, more) ?? '',
    /take 185 bytes with this one, and 184 are allowed; delete releases/,
  )
})
