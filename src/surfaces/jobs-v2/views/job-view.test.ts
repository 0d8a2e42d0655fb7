import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFixedClock } from '../../../../test/support/fixed-clock.ts'
import type { Job, Output } from '../../../domain/jobs/job.ts'
import { createDirectLinks, createJobBytes } from './job-view.ts'

const HERE = { origin: 'http://here', mountPrefix: '' }
const clock = createFixedClock(new Date(0))

function toOutput(index: number): Output {
  const id = `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`
  const of = { nodeId: '1', name: `${index}.png`, type: 'image', contentType: 'image/png' } as const
  return { assetId: id, ...of, sizeBytes: 1, hash: 'h' }
}

function jobWith(outputs: readonly Output[]): Job {
  return {
    ...{ id: 'a', pool: 'default', accountId: 'local', status: 'succeeded', priority: 0, metadata: {}, attempt: 1 },
    ...{ createdAt: new Date(0), startedAt: new Date(0), completedAt: new Date(0), expiresAt: new Date(1_000_000) },
    ...{ queuePosition: null, progress: null, error: null, outputsReused: false, outputsReplaced: 0, version: 3 },
    outputs,
  }
}

function openBytes() {
  return createJobBytes({ contentLinks: createDirectLinks(clock), linkStyle: { isAbsolute: false }, clock })
}

test('the answer of a job is kept from the second time on, for callers with the same address', () => {
  const jobBytes = openBytes()
  const job = jobWith([toOutput(1)])
  const [first, second, third] = [jobBytes(job, HERE), jobBytes(job, HERE), jobBytes(job, HERE)]
  assert.deepEqual(second, first)
  assert.notEqual(second, first, 'most are asked for once, and need not be kept')
  assert.equal(third, second)
  assert.match(jobBytes(job, { ...HERE, origin: 'http://there' }).toString(), /http:\/\/there/)
})

test('the answer of a job with many outputs is kept at once', () => {
  const jobBytes = openBytes()
  const job = jobWith(Array.from({ length: 101 }, (_, index) => toOutput(index)))
  assert.equal(jobBytes.isQuick(job, HERE), false)
  const first = jobBytes(job, HERE)
  assert.equal(jobBytes(job, HERE), first)
  assert.equal(jobBytes.isQuick(job, HERE), true)
})
