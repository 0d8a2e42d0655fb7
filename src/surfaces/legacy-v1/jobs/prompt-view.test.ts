import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Job, JobError } from '../../../domain/jobs/job.ts'
import { isTerminal, JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'
import { toExceptionType, toTraceback } from '../legacy-errors.ts'
import { GROUP_WORDS, statesOfGroup, toStatusWord } from './prompt-view.ts'

const CREATED = new Date(1_000_000)
const LATER = { now: new Date(1_060_000), isAtLimit: false }
const TERMINAL = ['success', 'error', 'non_retryable_error', 'lost', 'cancelled']

function jobOf(status: JobStatus, change: Partial<Job> = {}): Job {
  return {
    id: 'id',
    pool: 'default',
    accountId: 'a',
    status,
    priority: 0,
    metadata: {},
    createdAt: CREATED,
    startedAt: null,
    completedAt: null,
    expiresAt: new Date(2_000_000),
    queuePosition: null,
    progress: null,
    outputs: [],
    error: null,
    outputsReused: false,
    outputsReplaced: 0,
    attempt: 0,
    version: 1,
    ...change,
  }
}

function errorOf(code: string): JobError {
  return { code, message: '', nodeId: null, classType: null, traceback: null }
}

test('a job that waits is just accepted, held back by its account, or waiting', () => {
  assert.equal(toStatusWord(jobOf('queued'), { ...LATER, now: CREATED }), 'submitted')
  assert.equal(toStatusWord(jobOf('queued'), LATER), 'queued_waiting')
  assert.equal(toStatusWord(jobOf('queued'), { ...LATER, isAtLimit: true }), 'queued_limited')
})

test('a failed job says whether trying again can help, unless it was lost', () => {
  const word = (code: string) => toStatusWord(jobOf('failed', { error: errorOf(code) }), LATER)
  assert.equal(word('node_execution_error'), 'error')
  for (const code of ['invalid_workflow', 'missing_weights', 'missing_node_class', 'input_too_large'])
    assert.equal(word(code), 'non_retryable_error', code)
  assert.equal(word('worker_lost'), 'lost')
})

test('exactly the ended states have one of the five final words', () => {
  for (const status of JOB_STATUSES) {
    assert.equal(TERMINAL.includes(toStatusWord(jobOf(status), LATER)), isTerminal(status), status)
  }
})

test('every status that lists show is in exactly one group', () => {
  const all = GROUP_WORDS.flatMap(statesOfGroup)
  assert.deepEqual(all.toSorted(), JOB_STATUSES.filter((status) => status !== 'expired').toSorted())
})

test('causes that the contract names have its names, and a node its own exception', () => {
  const cases: [code: string, engineType: string | null, word: string][] = [
    ['node_execution_error', 'torch.OutOfMemoryError', 'OOMError'],
    ['node_execution_error', 'torch.cuda.OutOfMemoryError', 'OOMError'],
    ['out_of_memory', null, 'OOMError'],
    ['invalid_workflow', null, 'ValidationError'],
    ['missing_model', 'FileNotFoundError', 'ModelDownloadError'],
    ['missing_weights', 'ValidationError', 'ModelDownloadError'],
    ['missing_weights', null, 'ModelDownloadError'],
    ['missing_node_class', null, 'ValidationError'],
    ['input_unavailable', null, 'ImageDownloadError'],
    ['insufficient_credits', null, 'InsufficientFundsError'],
    ['node_execution_error', 'InsufficientFundsError', 'InsufficientFundsError'],
    ['subscription_inactive', null, 'InactiveSubscriptionError'],
    ['node_execution_error', 'RuntimeError', 'RuntimeError'],
    ['worker_lost', null, 'ServiceError'],
  ]
  for (const [code, engineType, word] of cases) assert.equal(toExceptionType(errorOf(code), engineType), word, code)
})

test('a traceback leads through no line of our own', () => {
  const text = '  in resize, tensor/resize.ts line 10\n  File "nodes.py", line 3, in run\nRuntimeError: no'
  assert.deepEqual(toTraceback(text), ['  File "nodes.py", line 3, in run\n', 'RuntimeError: no\n'])
  assert.deepEqual(toTraceback(null), [])
})
