import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JobStatus } from '../transitions.ts'
import { chargeOf } from './charge.ts'

const PRICE = { perSecondMicros: 100, minimumMicros: 250 }

interface End {
  readonly from?: JobStatus
  readonly to: JobStatus
  readonly code?: string
  readonly ms?: number
  readonly startedAt?: number | null
}

function charged({ from = 'running', to, code, ms = 10_000, startedAt = 5_000 }: End): number {
  return chargeOf(PRICE, { from, to, errorCode: code ?? null, startedAt, endedAt: 5_000 + ms })
}

test('a job that succeeded costs its time, and at least the minimum', () => {
  assert.equal(charged({ to: 'succeeded' }), 1_000)
  assert.equal(charged({ to: 'succeeded', ms: 2_500 }), 250)
  assert.equal(charged({ to: 'succeeded', ms: 1 }), 250)
  assert.equal(charged({ from: 'canceling', to: 'succeeded' }), 1_000)
})

test('a run that its owner or its own workflow ended costs its time, and no minimum', () => {
  assert.equal(charged({ from: 'canceling', to: 'canceled', ms: 500 }), 50)
  const own = [
    'node_execution_error',
    'out_of_memory',
    'timeout',
    'output_too_large',
    'too_many_outputs',
    'storage_quota',
    'refused_by_policy',
  ]
  for (const code of own) assert.equal(charged({ to: 'failed', code, ms: 500 }), 50, code)
})

test('what failed on our side costs nothing, whatever the code', () => {
  for (const code of ['engine_lost', 'worker_lost', 'interrupted', 'check_unavailable', 'a code of tomorrow']) {
    assert.equal(charged({ to: 'failed', code }), 0, code)
  }
  assert.equal(charged({ to: 'failed' }), 0)
  assert.equal(charged({ to: 'expired' }), 0)
})

test('a job that no worker holds costs nothing, also when an earlier attempt of it was lost', () => {
  for (const to of ['succeeded', 'canceled', 'expired'] as const) {
    assert.equal(charged({ from: 'queued', to }), 0, to)
    assert.equal(charged({ to, startedAt: null }), 0, to)
  }
})
