/** What a late message says of a prediction, and one whose job is gone. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { Message, MessageType } from '../../../domain/webhooks/webhook.ts'
import { createTellMessage, type TellDeps } from '../tell-prediction.ts'

const at = (ms: number) => new Date(1_700_000_000_000 + ms)
const output = (id: string) => ({
  id,
  node_id: '2',
  name: id,
  type: 'output',
  content_type: 'image/png',
  size_bytes: 3,
  hash: 'h',
})
const stored = {
  ...{ id: 'job', accountId: 'acme', status: 'succeeded', error: null, expiresAt: at(9000) },
  ...{ createdAt: at(0), startedAt: at(1), completedAt: at(5), metadata: { '@endpoint': 'plain', '@version': '3' } },
  outputs: ['a', 'b'].map((assetId) => ({ assetId, nodeId: '2' })),
} as unknown as Job

const gone = async () => {
  throw new ServiceError('not_found', 'gone')
}
function tellerOf(job: Job | null) {
  const parts = {
    endpoints: { endpoints: { resolveToCall: gone }, originOf: async () => null },
    jobs: { reader: { find: job === null ? gone : async () => job } },
  } as unknown as TellDeps['parts']
  const teller = createTellMessage({ parts, door: { linkTo: ({ assetId }, _job, base) => `${base}/${assetId}` } })
  return (type: MessageType, facts: object) => {
    const message: Message = { id: 'msg', type, subject: 'job', at: at(7), facts: JSON.stringify(facts) }
    return teller(message, { accountId: 'acme', base: 'https://a.example' })
  }
}
const shown = (told: Awaited<ReturnType<ReturnType<typeof tellerOf>>>) => [
  told?.['status'],
  told?.['output'],
  told?.['completed_at'],
]

test('says what was true when it came up, however late it is sent', async () => {
  const tell = tellerOf(stored)
  assert.deepEqual(shown(await tell('job.started', { status: 'running' })), ['processing', null, null])
  assert.deepEqual(shown(await tell('output.created', output('a'))), ['processing', 'https://a.example/a', null])
  const end = await tell('job.succeeded', {})
  assert.deepEqual(end?.['output'], ['https://a.example/a', 'https://a.example/b'])
  assert.equal(end?.['version'], 'plain@3')
})

test('says of a job that is gone what the message knows itself', async () => {
  const tell = tellerOf(null)
  const { metadata } = stored
  const times = { created_at: at(0).getTime(), started_at: at(1).getTime(), completed_at: at(5).getTime() }
  const told = await tell('job.failed', {
    status: 'failed',
    error: { message: 'no memory' },
    outputs: [],
    metadata,
    ...times,
  })
  assert.deepEqual([told?.['status'], told?.['error'], told?.['model']], ['failed', 'no memory', 'acme/plain'])
  assert.equal(told?.['completed_at'], at(5).toISOString())
  // Nobody knows any more which endpoint it was.
  assert.equal(await tell('output.created', output('a')), null)
})
