import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { createManualTicker } from '../../../../test/support/manual-ticker.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import { createEndLook } from './end-look.ts'

/** Reads wait until the test answers them. */
function open() {
  const ticker = createManualTicker()
  const pending: PromiseWithResolvers<Job>[] = []
  const read: string[] = []
  const ended: string[] = []
  const look = createEndLook({
    ticker,
    isFollowed: (accountId) => accountId === 'ada',
    findJob(_accountId, jobId) {
      read.push(jobId)
      const answer = Promise.withResolvers<Job>()
      pending.push(answer)
      return answer.promise
    },
    onEnd({ jobId }) {
      ended.push(jobId)
      look.forget(jobId)
    },
  })
  async function answerAll(status: Job['status']) {
    for (const { resolve } of pending.splice(0)) resolve({ status } as Job)
    await turn()
  }
  return { ticker, look, pending, read, ended, answerAll }
}

test('gaps while a look is under way cause one more look, and reads come in bounded batches', async () => {
  const { look, read, pending, answerAll } = open()
  for (let index = 0; index < 20; index++) look.note({ jobId: `job ${index}`, accountId: 'ada' }, false)
  for (let gap = 0; gap < 5; gap++) look.lookAtAll()
  assert.equal(pending.length, 16)
  while (pending.length > 0) await answerAll('running')
  assert.equal(read.length, 40)
})

test('by time only jobs are read that run elsewhere and whose account is followed', async () => {
  const { ticker, look, read, ended, answerAll } = open()
  look.note({ jobId: 'own', accountId: 'ada' }, true)
  look.note({ jobId: 'unfollowed', accountId: 'bob' }, false)
  look.note({ jobId: 'elsewhere', accountId: 'ada' }, false)
  look.start()
  ticker.advance(15_000)
  assert.deepEqual(read, ['elsewhere'])
  await answerAll('succeeded')
  assert.deepEqual(ended, ['elsewhere'])
  ticker.advance(15_000)
  assert.deepEqual(read, ['elsewhere'])
  look.stop()
  assert.equal(ticker.count(), 0)
})

test('a job that is gone has ended, and one that could not be read is looked at again', async () => {
  const { ticker, look, read, pending, ended } = open()
  look.note({ jobId: 'gone', accountId: 'ada' }, false)
  look.note({ jobId: 'unread', accountId: 'ada' }, false)
  look.start()
  ticker.advance(5000)
  const [gone, unread] = pending.splice(0)
  gone.reject(new ServiceError('not_found', 'there is no job with this id'))
  unread.reject(new Error('store away'))
  await turn()
  assert.deepEqual(ended, ['gone'])
  ticker.advance(5000)
  assert.deepEqual(read, ['gone', 'unread', 'unread'])
  look.stop()
})
