/** Partner models for nodes that run on a joined worker: the service calls them, and the worker never sees a provider's key. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ADMIN_TOKEN, createWorkerKey } from '../../support/app/join-worker.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { MODELS } from '../../support/app/start-router.ts'
import { call } from '../../support/clients/call.ts'
import { WorkerClient } from '../../support/clients/worker-client.ts'
import { createFakeProvider } from '../../support/providers/fake-provider.ts'

test('a model runs for a job that is held, once per key, and for no other', async () => {
  const provider = createFakeProvider({})
  await using app = await startTestApp({
    settings: { joins: 'on', adminToken: ADMIN_TOKEN },
    overrides: { engines: [], models: { providers: [provider], models: MODELS } },
  })
  const worker = new WorkerClient(app.url, (await createWorkerKey(app.url)).text)
  await worker.publish()
  const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } } })
  assert.equal((await call(app.url, '/api/v2/jobs', { method: 'POST', body })).status, 201)
  const lease = await worker.take()
  const run = (model: string, key: string) => {
    const asked = { lease_id: lease.leaseId, model, input: '{"seed":12345678901234567890}', images: [], key }
    return worker.ask('POST', `/jobs/${lease.jobId}/models`, asked)
  }
  const first = await run('fake/direct', 'node 1')
  assert.equal(first.status, 200, first.text)
  assert.equal(typeof first.json.output, 'string')
  const again = await run('fake/direct', 'node 1')
  assert.deepEqual([again.status, again.json], [200, first.json])
  assert.equal(provider.submits.length, 1)
  assert.ok((await run('fake/nothing', 'node 2')).status >= 400)
  await worker.finish(lease)
  assert.equal((await run('fake/direct', 'node 3')).status, 404)
  assert.equal(provider.submits.length, 1)
})
