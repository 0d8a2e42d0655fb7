/** Canceling many jobs, and running one again with changes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { createConsoleClient } from '../../support/clients/console-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const CANCEL = '/jobs/cancel'
const RERUN = '/jobs/{id}/rerun'
const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }
const GATE = { '2': { class_type: 'FakeGate', inputs: {} } }

test('what waits is canceled and what runs is left; the number is told first', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine }, settings: { workers: '1' } })
  const client = createConsoleClient(app.url)
  const running = await client.submit(GATE)
  await engine.untilRuns(1)
  const waiting = [
    await client.submit(GATE),
    await client.submit(SAVE),
    await client.submit(GATE, { metadata: { a: 'b' } }),
  ]
  const cancel = async (body: object) => (await client.ask('POST', CANCEL, CANCEL, body)).json
  assert.deepEqual(await cancel({ filter: {}, only_waiting: true, dry_run: true }), { count: 3, has_more: false })
  assert.deepEqual(await cancel({ filter: { class: 'FakeSave' }, only_waiting: true }), { count: 1, has_more: false })
  await client.untilStatus(waiting[1] ?? '', 'canceled')
  assert.deepEqual(await cancel({ filter: { 'meta.a': 'b' } }), { count: 1, has_more: false })
  assert.deepEqual(await cancel({ ids: [waiting[0], waiting[1], 'x'] }), { count: 1, has_more: false })
  assert.deepEqual(await cancel({ filter: { status: 'failed' } }), { count: 0, has_more: false })
  for (const id of waiting) await client.untilStatus(id, 'canceled')
  engine.openGate()
  await client.untilStatus(running, 'succeeded')
  const wrong = [{}, { ids: [], filter: {} }, { filter: { clas: 'x' } }, { filter: { status: 1 } }, { ids: 'x' }]
  for (const body of wrong)
    assert.ok((await client.ask('POST', CANCEL, CANCEL, body)).status >= 400, JSON.stringify(body))
})

test('a job runs again with changed inputs, and no number loses a digit', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const headers = { 'content-type': 'application/json' }
  const seed = '18446744073709551615'
  const body = `{"workflow":{"1":{"class_type":"FakeValue","inputs":{"value":${seed},"key":"a"}}},"metadata":{"scene":"1"},"priority":3}`
  const first = (await call(app.url, '/api/v2/jobs', { method: 'POST', headers, body })).json.id
  const plain = await client.ask('POST', RERUN, `/jobs/${first}/rerun`, {})
  assert.deepEqual([plain.status, plain.json.metadata, plain.json.priority], [201, { scene: '1' }, 3])
  const workflowOf = async (id: string) => (await call(app.url, `/api/v2/jobs/${id}/workflow`)).text
  assert.ok((await workflowOf(plain.json.id)).includes(seed))
  const changes = `{"changes":[{"node":"1","input":"value","value":18446744073709551614}],"metadata":{"scene":"2"}}`
  const changed = await client.ask('POST', RERUN, `/jobs/${first}/rerun`, changes)
  assert.deepEqual([changed.status, changed.json.metadata], [201, { scene: '2' }])
  assert.ok((await workflowOf(changed.json.id)).includes('18446744073709551614'))
  assert.ok((await workflowOf(changed.json.id)).includes('"key":"a"'))
  for (const wrong of [
    { changes: [{ node: '9', input: 'a', value: 1 }] },
    { changes: [{ node: '1', input: 'a' }] },
    { changes: [{ node: '__proto__', input: 'a', value: 1 }] },
    { changes: 'x' },
    { metadata: { ' ': 'x' } },
  ])
    assert.ok((await client.ask('POST', RERUN, `/jobs/${first}/rerun`, wrong)).status >= 400, JSON.stringify(wrong))
})

test('nobody acts on jobs of another account', async () => {
  await using shared = await startShared()
  const [ann, bob] = [await shared.account('ann'), await shared.account('bob')]
  const client = createConsoleClient(shared.url, ann.key)
  const id = await client.submit(GATE)
  const other = createConsoleClient(shared.url, bob.key)
  assert.deepEqual((await other.ask('POST', CANCEL, CANCEL, { ids: [id] })).json, { count: 0, has_more: false })
  assert.deepEqual((await other.ask('POST', CANCEL, CANCEL, { filter: {} })).json, { count: 0, has_more: false })
  assert.equal((await other.ask('POST', RERUN, `/jobs/${id}/rerun`, {})).status, 404)
  shared.engine.openGate()
  await client.untilStatus(id, 'succeeded')
})
