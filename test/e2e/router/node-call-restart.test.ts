/** A model call inside a workflow, when its run is taken away from it: the next attempt of the job waits for that very call. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { CheckedClient, node } from '../../support/clients/checked-client.ts'
import { accepted, createFakeProvider, done, fakeModel } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const GRAPH = {
  '1': node('RunModel', { model: 'fake/polled', input: '{}' }),
  '2': node('PreviewAny', { source: ['1', 0] }),
}

async function startWith(
  provider: ReturnType<typeof createFakeProvider>,
  { drainTimeout = '50ms' } = {},
): Promise<TestApp> {
  const models = { providers: [provider], models: [fakeModel('fake/polled', { returns: 'poll' })] }
  const settings = { workers: '1', drainTimeout, adminToken: ADMIN_TOKEN }
  return startTestApp({ settings, overrides: { models } })
}

async function untilPolled(provider: ReturnType<typeof createFakeProvider>): Promise<void> {
  const seen = provider.polls.length
  await waitUntil(() => provider.polls.length !== seen)
}

test('a service that is stopped in the middle of the call goes on with it after the start', async () => {
  const provider = createFakeProvider()
  provider.answer(accepted({ task: 1 }))
  const first = await startWith(provider)
  const { id } = await new CheckedClient(first.url).accepted(GRAPH)
  await untilPolled(provider)
  await first.app.drain()
  await using second = await first.restart()
  provider.pollAnswer(done({ made: 'once' }))
  const job = await new CheckedClient(second.url).until(id, ({ completed_at }) => completed_at !== null)
  assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
  assert.equal(provider.submits.length, 1)
})

test('a call that a job begins while the service stops is made after the start', async () => {
  const provider = createFakeProvider()
  provider.answer(accepted({ task: 1 }))
  const first = await startWith(provider, { drainTimeout: '500ms' })
  const next = node('RunModel', { model: 'fake/polled', input: ['1', 0] })
  const graph = { '1': GRAPH['1'], '3': next, '2': node('PreviewAny', { source: ['3', 0] }) }
  const { id } = await new CheckedClient(first.url).accepted(graph)
  await untilPolled(provider)
  const drained = first.app.drain()
  provider.pollAnswer(done({ made: 'once' }))
  await drained
  assert.equal(provider.submits.length, 1)
  await using second = await first.restart()
  const job = await new CheckedClient(second.url).until(id, ({ completed_at }) => completed_at !== null)
  assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
  assert.equal(provider.submits.length, 2)
})

test('a run that is given to another engine waits for the call of the one before', async () => {
  const provider = createFakeProvider()
  provider.answer(accepted({ task: 1 }))
  await using service = await startWith(provider)
  const client = new CheckedClient(service.url)
  const { id } = await client.accepted(GRAPH)
  await untilPolled(provider)
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  const admin = (path: string) => call(service.url, `/admin/v1${path}`, { method: 'POST', headers })
  const [engine] = service.app.fleet.status()
  assert.equal((await admin(`/engines/${engine?.id}/drain`)).status, 200)
  await client.untilStatus(id, 'queued')
  assert.equal((await admin(`/engines/${engine?.id}/resume`)).status, 200)
  await client.untilStatus(id, 'running')
  await untilPolled(provider)
  provider.pollAnswer(done({ made: 'once' }))
  const job = await client.until(id, ({ completed_at }) => completed_at !== null)
  assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
  assert.equal(provider.submits.length, 1)
})
