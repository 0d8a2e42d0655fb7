import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../../../lib/clock.ts'
import { createSubmitBatch, type ReadItem } from '../../../src/domain/jobs/batches/submit-batch.ts'

test('a batch of one graph that is too large a thousand times is refused after a few of them were made', async () => {
  let made = 0
  const submitBatch = createSubmitBatch({
    pool: 'default',
    clock: systemClock,
    retentionMs: 1000,
    async prepareWorkflow() {
      made++
      const inputs = { text: 'x'.repeat(200_000) }
      return { graph: new Map([['1', { classType: 'Any', inputs, title: null }]]), text: JSON.stringify(inputs) }
    },
  } as never)
  const items = Array.from({ length: 1000 }, (): ReadItem => () => ({ workflow: {}, priority: 0 }) as never)
  const asked = { accountId: 'local', idempotencyKey: null, digest: '', isWhole: true, items }
  const changes = items.map((_, index) => ({ '1.seed': index }))
  await assert.rejects(submitBatch({ ...asked, changes }), { refusal: 'payload_too_large' })
  assert.ok(made <= 8, `${made} graphs were made`)
})
