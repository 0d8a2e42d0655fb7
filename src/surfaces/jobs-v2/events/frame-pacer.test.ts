import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPacer } from './frame-pacer.ts'

test('the first frame passes at once, later ones every half second, and only the newest', () => {
  let now = 0
  const pacer = createPacer(() => now)
  const [a, b, c] = ['a', 'b', 'c'].map((text) => Buffer.from(text))
  assert.equal(pacer.take(), null)
  pacer.offer(a)
  assert.equal(pacer.take(), a)
  pacer.offer(b)
  pacer.offer(c)
  now = 499
  assert.equal(pacer.take(), null)
  assert.ok(pacer.isWaiting())
  now = 500
  assert.equal(pacer.take(), c)
  assert.ok(!pacer.isWaiting())
  assert.equal(pacer.newest(), c)
})
