import assert from 'node:assert/strict'
import { test } from 'node:test'
import { outlastOutage, ServiceError, storeUnavailable } from './errors.ts'

test('an operation is tried again until the store is back', async () => {
  let calls = 0
  const result = await outlastOutage(async () => {
    calls++
    if (calls < 3) throw storeUnavailable(new Error('connection refused'))
    return 'stored'
  }, new AbortController().signal)
  assert.deepEqual([result, calls], ['stored', 3])
})

test('any other failure is passed on at once', async () => {
  const fault = new ServiceError('storage_full', 'the disk is full')
  await assert.rejects(
    outlastOutage(() => Promise.reject(fault), new AbortController().signal),
    fault,
  )
})

test('the signal ends the wait with the last refusal', async () => {
  const over = new AbortController()
  const waiting = outlastOutage(() => Promise.reject(storeUnavailable(null)), over.signal)
  over.abort()
  await assert.rejects(waiting, (error) => error instanceof ServiceError && error.refusal === 'store_unavailable')
})
