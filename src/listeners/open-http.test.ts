import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOpenFileLimit, toConnectionLimit } from './open-http.ts'

test('connections leave file descriptors for stored files, whatever the limit of the system', () => {
  assert.equal(toConnectionLimit(null), 20_000)
  assert.equal(toConnectionLimit(1_048_576), 20_000)
  for (const openFiles of [256, 1024, 4096, 20_000]) {
    assert.ok(openFiles - toConnectionLimit(openFiles) >= 128, String(openFiles))
  }
  assert.equal(toConnectionLimit(64), 16)
})

test('the limit of this process is a number or unknown', () => {
  const limit = readOpenFileLimit()
  assert.ok(limit === null || limit > 0)
})
