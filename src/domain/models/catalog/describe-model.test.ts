import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describePrice, titleOf } from './describe-model.ts'

test('prices are told in words', () => {
  const fixed = { kind: 'fixed', micros: 40_000 } as const
  const table = {
    kind: 'table',
    by: [],
    micros: new Map([...[['a', 10_000] as const, ['b', 50_000] as const]]),
  } as const
  assert.equal(describePrice({ kind: 'free' }), 'free')
  assert.equal(describePrice({ kind: 'unknown', reason: 'x', holdMicros: 1 }), null)
  assert.equal(describePrice({ kind: 'reported', holdMicros: 2_500_000 }), 'what the provider reports, at most $2.50')
  const parts = [
    { unit: 'image', rate: fixed, per: 1, times: [] },
    { unit: 'token', rate: { kind: 'fixed', micros: 0.25 }, per: 1_000_000, times: [] },
    { unit: 'second', rate: table, per: 1, times: [] },
  ] as const
  assert.equal(
    describePrice({ kind: 'sum', parts }),
    '$0.04 per image + $0.00000025 per 1,000,000 tokens + $0.01 to $0.05 per second',
  )
  assert.equal(titleOf({ model: 'flux-2_pro' }), 'Flux 2 pro')
})
