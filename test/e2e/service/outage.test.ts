/** A database that is away for a while: callers are told to come again, and whatever is under way waits for it and ends right. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createOutages } from '../../support/app/away-store.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { LegacyClient } from '../../support/clients/legacy-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const ADMIN_TOKEN = 'admin-token-of-this-test'
const AGAIN = /^[1-9]\d*$/

async function startWithOutages() {
  const engine = createFakeEngine()
  const outages = createOutages()
  const app = await startTestApp({
    settings: { adminToken: ADMIN_TOKEN, sandboxModels: 'on' },
    overrides: { engine, wrapStore: outages.wrapStore },
  })
  return { app, engine, outages, client: new CheckedClient(app.url), url: app.url }
}

async function untilReady(url: string, status: number) {
  for (;;) {
    const answer = await call(url, '/readyz')
    if (answer.status === status) return answer.json
    await pause(20)
  }
}

test('every surface answers 503 with Retry-After, and works again as soon as the database is back', async () => {
  const { app, outages, client, url } = await startWithOutages()
  await using _app = app
  const admin = (path: string) => call(url, path, { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
  await untilReady(url, 200)
  outages.isAway = true
  const workflow = { '1': node('FakeSource') }
  for (const answer of [
    await client.submit({ workflow }),
    await client.call('/api/v2/jobs'),
    await client.upload('a.png', 'bytes'),
  ]) {
    refused(answer, 503, 'store_unavailable')
    assert.match(String(answer.headers['retry-after']), AGAIN)
  }
  const legacy = new LegacyClient(url)
  const queue = await legacy.get('/api/queue')
  assert.deepEqual([queue.status, queue.json.code], [503, 'store_unavailable'])
  const prompt = await legacy.post('/api/prompt', { prompt: { ...workflow, '2': node('FakeSave') } })
  assert.deepEqual([prompt.status, prompt.json.error.type], [503, 'store_unavailable'])
  for (const { headers } of [queue, prompt]) assert.match(headers.get('retry-after') ?? '', AGAIN)
  const run = await call(url, '/v2/models/sandbox/image', { method: 'POST', body: '{"prompt":"x"}' })
  assert.deepEqual([run.status, run.json.error_type], [503, 'service_unavailable'])
  assert.match(String(run.headers['retry-after']), AGAIN)
  const overview = await admin('/admin/v1/overview')
  assert.deepEqual([overview.status, overview.json.error.type], [503, 'store_unavailable'])
  assert.match(String(overview.headers['retry-after']), AGAIN)
  assert.equal((await call(url, '/healthz')).status, 200, 'an outage restarts nothing')
  assert.deepEqual(await untilReady(url, 503), { status: 'not_ready', reason: 'store', role: 'all' })
  outages.isAway = false
  assert.equal((await client.submit({ workflow })).status, 201)
  assert.equal((await admin('/admin/v1/overview')).status, 200)
  await untilReady(url, 200)
})

test('a run that ends meanwhile is written afterwards, in its first attempt, and its stream tells it', async () => {
  const { app, engine, outages, client, url } = await startWithOutages()
  await using _app = app
  const { id } = await client.accepted({ '1': node('FakeGate'), '2': node('FakeSave', { count: 2 }) })
  await engine.untilRuns(1)
  using reader = openEvents(url, `/api/v2/jobs/${id}/events`)
  assert.match(await reader.head, /^HTTP\/1\.1 200 /)
  outages.isAway = true
  engine.openGate()
  await outages.untilRefused(outages.refused + 3)
  outages.isAway = false
  const frames = await reader.rest()
  assert.deepEqual(
    frames.filter(({ event }) => event === 'output').map(({ data }) => data.node_id),
    ['2', '2'],
  )
  assert.equal(frames.filter(({ event }) => event === 'status').at(-1)?.data.status, 'succeeded')
  const job = await client.job(id)
  assert.deepEqual([job.status, job.outputs.length], ['succeeded', 2])
  assert.deepEqual([engine.runs.length, engine.runs[0].attempt], [1, 1])
})

test('workers claim again afterwards, and nothing has ended the service', async () => {
  const { app, engine, outages, client } = await startWithOutages()
  await using _app = app
  let hasFailed = false
  app.app.failed.then(() => {
    hasFailed = true
  })
  outages.isAway = true
  await outages.untilRefused(outages.refused + 2)
  outages.isAway = false
  const job = await client.run({ '1': node('FakeSave') })
  assert.equal(job.status, 'succeeded', JSON.stringify(job.error))
  assert.deepEqual([engine.runs.length, hasFailed], [1, false])
})
