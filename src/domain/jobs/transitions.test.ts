import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canMove, isHeld, isTerminal, JOB_STATUSES, type JobStatus } from './transitions.ts'

const before = (to: JobStatus) => JOB_STATUSES.filter((from) => canMove(from, to)).toSorted()

const ENDS: readonly JobStatus[] = ['succeeded', 'failed', 'canceled', 'expired']

test('an end is an end', () => {
  assert.deepEqual(JOB_STATUSES.filter(isTerminal).toSorted(), ENDS.toSorted())
  for (const end of ENDS) for (const to of JOB_STATUSES) assert.equal(canMove(end, to), false, `${end} -> ${to}`)
})

test('a job that waits is canceled at once, one that runs only by its worker', () => {
  assert.equal(canMove('queued', 'canceled'), true)
  assert.equal(canMove('queued', 'canceling'), false)
  assert.equal(canMove('running', 'canceling'), true)
  assert.equal(canMove('running', 'canceled'), false)
  assert.deepEqual(before('canceled'), ['canceling', 'queued'])
})

test('a run may end well or fail, also after its cancel, and never goes back to the queue then', () => {
  for (const end of ['succeeded', 'failed'] as const) assert.equal(canMove('running', end), true, end)
  for (const end of ['succeeded', 'failed', 'canceled'] as const) assert.equal(canMove('canceling', end), true, end)
  assert.equal(canMove('canceling', 'queued'), false)
  assert.equal(canMove('canceling', 'running'), false)
})

test('whatever has not ended may expire, and only a lost or returned run waits again', () => {
  assert.deepEqual(before('expired'), ['canceling', 'queued', 'running'])
  assert.deepEqual(before('queued'), ['running'])
  assert.deepEqual(before('running'), ['queued'])
})

test('a worker holds what runs and what it is asked to stop', () => {
  assert.deepEqual(JOB_STATUSES.filter(isHeld).toSorted(), ['canceling', 'running'])
})
