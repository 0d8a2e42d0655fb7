import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import { createRetryEstimate } from './submit-refusals.ts'

test('the wait follows the pace at which jobs end, from one second to a minute', () => {
  const clock = createFixedClock()
  const { finished, retryAfterSeconds } = createRetryEstimate(clock)
  assert.equal(retryAfterSeconds(), 5)
  for (let count = 0; count < 50; count++) {
    clock.advance(8000)
    finished()
  }
  assert.equal(retryAfterSeconds(), 8)
  for (let count = 0; count < 50; count++) finished()
  assert.equal(retryAfterSeconds(), 1)
  for (let count = 0; count < 50; count++) {
    clock.advance(3_600_000)
    finished()
  }
  assert.equal(retryAfterSeconds(), 60)
})
