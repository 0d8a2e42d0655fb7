import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFramePacer } from './frame-pacer.ts'

test('the first frame passes at once, later ones every half second, and only the newest', () => {
  let now = 0
  const encoded: string[] = []
  const pacer = createFramePacer(
    () => now,
    (text: string) => {
      encoded.push(text)
      return Buffer.from(text)
    },
  )
  assert.equal(pacer.take(), null)
  pacer.offer('a')
  assert.equal(String(pacer.take()), 'a')
  pacer.offer('b')
  pacer.offer('c')
  now = 499
  assert.equal(pacer.take(), null)
  assert.ok(pacer.isWaiting())
  now = 500
  assert.equal(String(pacer.take()), 'c')
  assert.ok(!pacer.isWaiting())
  assert.equal(String(pacer.newest()), 'c')
  assert.deepEqual(encoded, ['a', 'c'])
})
