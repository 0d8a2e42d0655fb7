import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../errors.ts'
import { readOverrides, readTiers } from './read-limits.ts'
import { BASE_LIMITS, DEFAULT_TIERS, limitsFor } from './tiers.ts'

function isInvalid(pattern: RegExp) {
  return (error: unknown) =>
    error instanceof ServiceError && error.refusal === 'invalid_field' && pattern.test(error.message)
}

test('tiers fill in what they leave out, and the first is the default', () => {
  const tiers = readTiers({ team: { concurrentJobs: 7 }, free: { requestsPerMinute: null, denyNodes: ['A', 'A'] } })
  assert.equal(tiers.defaultName, 'team')
  assert.deepEqual(tiers.byName.get('team'), { ...BASE_LIMITS, concurrentJobs: 7 })
  assert.deepEqual(tiers.byName.get('free'), { ...BASE_LIMITS, requestsPerMinute: null, denyNodes: ['A'] })
})

test('what is wrong is named with its tier', () => {
  assert.throws(() => readTiers({ free: { concurrentJob: 1 } }), isInvalid(/^free: concurrentJob is not a limit/))
  assert.throws(() => readTiers({ free: { concurrentJobs: 1.5 } }), isInvalid(/^free: concurrentJobs must be/))
  assert.throws(() => readTiers({ free: { creditFloorMicros: 1 } }), isInvalid(/creditFloorMicros must be/))
  assert.throws(() => readTiers({ free: { allowNodes: [''] } }), isInvalid(/allowNodes must be a list/))
  assert.throws(() => readTiers({ free: { subscriptionActive: 'yes' } }), isInvalid(/true or false/))
  assert.throws(() => readTiers({ 'Free!': {} }), isInvalid(/has the name "Free!"/))
  for (const wrong of [{}, [], null, 'x', { free: 1 }]) assert.throws(() => readTiers(wrong), isInvalid(/must/))
  assert.throws(() => readOverrides({ __proto__: null, constructor: 1 }), isInvalid(/^constructor is not a limit/))
})

test('overrides win over the tier, also with null; an unknown tier runs nothing', () => {
  const limits = limitsFor(DEFAULT_TIERS, 'pro', { requestsPerMinute: null, concurrentJobs: 9 })
  assert.deepEqual([limits.concurrentJobs, limits.requestsPerMinute, limits.queuedJobs], [9, null, 10_000])
  assert.equal(limitsFor(DEFAULT_TIERS, 'gone', {}).subscriptionActive, false)
})
