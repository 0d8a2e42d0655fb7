import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EngineLostError } from '../../engine/engine-lost-error.ts'
import { statesBeforeEnd } from '../transitions.ts'
import { decideEnd, type RunFacts, toEngineLoss, toJobError } from './run-moves.ts'

const FACTS: RunFacts = {
  outcome: null,
  stop: null,
  loss: null,
  again: null,
  attempt: 1,
  maxAttempts: 3,
}
const BROKEN = toJobError('node_execution_error', 'bad')
const GONE = toEngineLoss(new EngineLostError('engine_unreachable', 'it was gone'))
const FULL = toJobError('storage_full', 'full')

function end(facts: Partial<RunFacts>): string {
  const verdict = decideEnd({ ...FACTS, ...facts })
  return verdict.verdict === 'finish' ? `${verdict.status}:${verdict.error?.code ?? '-'}` : verdict.verdict
}

test('what the engine reached counts before what was asked of it', () => {
  for (const stop of [null, { cause: 'cancel' }, { cause: 'timeout', limitMs: 1000 }] as const) {
    assert.equal(end({ outcome: { kind: 'succeeded' }, stop }), 'succeeded:-')
    assert.equal(end({ outcome: { kind: 'failed', error: BROKEN }, stop }), 'failed:node_execution_error')
  }
})

test('a failure that may not be the job’s own costs it nothing or one attempt, unless it was to be stopped anyway', () => {
  const outcome = { kind: 'failed', error: BROKEN } as const
  assert.equal(end({ outcome, again: 'free', attempt: 3 }), 'return')
  assert.equal(end({ outcome, again: 'spent', attempt: 2 }), 'requeue')
  assert.equal(end({ outcome, again: 'spent', attempt: 3 }), 'failed:node_execution_error')
  for (const again of ['free', 'spent'] as const) {
    assert.equal(end({ outcome, again, stop: { cause: 'cancel' } }), 'failed:node_execution_error')
  }
})

test('an interrupt ends the job for the reason it was made', () => {
  const outcome = { kind: 'interrupted' } as const
  assert.equal(end({ outcome, stop: { cause: 'cancel' } }), 'canceled:-')
  assert.equal(end({ outcome, stop: { cause: 'timeout', limitMs: 60_000 } }), 'failed:timeout')
  assert.equal(end({ outcome }), 'failed:interrupted')
})

test('a run that was given up ends for the same reason', () => {
  assert.equal(end({ stop: { cause: 'cancel' } }), 'canceled:-')
  assert.equal(end({ stop: { cause: 'timeout', limitMs: 60_000 }, loss: GONE }), 'failed:timeout')
})

test('a job whose output could not be kept never succeeds', () => {
  const stop = { cause: 'failed', error: FULL, mayPass: false } as const
  for (const outcome of [null, { kind: 'succeeded' }, { kind: 'interrupted' }] as const) {
    assert.equal(end({ outcome, stop }), 'failed:storage_full')
  }
})

test('a lack of room costs attempts before it costs the job', () => {
  const stop = { cause: 'failed', error: FULL, mayPass: true } as const
  for (const outcome of [null, { kind: 'succeeded' }, { kind: 'failed', error: BROKEN }] as const) {
    assert.equal(end({ outcome, stop, attempt: 2 }), 'requeue')
    assert.equal(end({ outcome, stop, attempt: 3 }), 'failed:storage_full')
  }
})

test('a lost engine costs attempts before it costs the job', () => {
  assert.equal(end({ loss: GONE, attempt: 1 }), 'requeue')
  assert.equal(end({ loss: GONE, attempt: 2 }), 'requeue')
  assert.equal(end({ loss: GONE, attempt: 3 }), 'failed:engine_lost')
  assert.equal(end({ loss: GONE, attempt: 1, stop: { cause: 'cancel' } }), 'canceled:-')
})

test('a worker ends only jobs that it holds, and cancels only those that are to be canceled', () => {
  assert.deepEqual(statesBeforeEnd('succeeded'), ['running', 'canceling'])
  assert.deepEqual(statesBeforeEnd('failed'), ['running', 'canceling'])
  assert.deepEqual(statesBeforeEnd('canceled'), ['canceling'])
})

test('a run that another one took down is run again, however often, and spends no attempt', () => {
  const facts = { ...FACTS, loss: { ...GONE, isBlameless: true }, attempt: 3 }
  assert.deepEqual(decideEnd(facts), { verdict: 'return' })
  assert.equal(end({ ...facts, stop: { cause: 'cancel' } }), 'canceled:-')
})

test('an engine that never began the run costs the job no attempt, unless it was to be stopped anyway', () => {
  const lost = { loss: { ...GONE, isUntouched: true } }
  assert.equal(end(lost), 'return')
  assert.equal(end({ ...lost, attempt: 3 }), 'return')
  assert.equal(end({ ...lost, stop: { cause: 'cancel' } }), 'canceled:-')
})
