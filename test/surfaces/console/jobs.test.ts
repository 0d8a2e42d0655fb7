/** GET /console/v1/jobs over the whole service: what a summary says, filters, pages, counts, and whose jobs they are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { createConsoleClient } from '../../support/clients/console-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const JOBS = '/jobs'
const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'x', filename_prefix: 'out/postcard_0012' } } }
const FAIL = { '4': { class_type: 'FakeFail', inputs: {} } }
const GATE = { '2': { class_type: 'FakeGate', inputs: {} }, '3': { class_type: 'FakeSave', inputs: { text: 'y' } } }

test('a list says of each job what a person looks for, in about 600 bytes', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine } })
  const client = createConsoleClient(app.url)
  const saved = await client.submit(SAVE, { metadata: { scene: '12', 'a.b': 'x'.repeat(500) } })
  await client.untilStatus(saved, 'succeeded')
  const failed = await client.submit(FAIL, { metadata: { name: 'my poster' } })
  await client.untilStatus(failed, 'failed')
  const gated = await client.submit(GATE)
  await engine.untilRuns(3)
  const { json, text } = await client.ask('GET', JOBS, `${JOBS}?counts=1`)
  const [running, second, third] = json.jobs
  assert.deepEqual([running.id, running.status, running.engine !== null], [gated, 'running', true])
  assert.deepEqual([second.id, second.title, second.error.code], [failed, 'my poster', 'node_execution_error'])
  assert.deepEqual([second.error.node_id, second.error.class_type], ['4', 'FakeFail'])
  assert.deepEqual([third.id, third.outputs, third.metadata['a.b'].length], [saved, 1, 60])
  assert.equal(third.title, 'postcard')
  assert.deepEqual([json.counts.running, json.counts.failed, json.counts.succeeded], [1, 1, 1])
  assert.ok(text.length < 3 * 650, `${text.length} bytes`)
  const compact = await client.ask('GET', JOBS, `${JOBS}?compact=1`)
  const nothing = (job: object) => Object.fromEntries(Object.entries(job).filter(([, value]) => value !== null))
  assert.deepEqual(compact.json.jobs.slice(1), json.jobs.slice(1).map(nothing), 'the same without what is null')
  assert.equal('error' in compact.json.jobs[2], false)
  engine.openGate()
  await client.untilStatus(gated, 'succeeded')
})

test('filters, texts and pages', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const ids: string[] = []
  for (let index = 0; index < 5; index += 1) {
    ids.push(await client.submit(index % 2 === 0 ? SAVE : FAIL, { metadata: { scene: String(index) } }))
    await client.untilStatus(ids[index] ?? '', 'succeeded', 'failed')
  }
  const [a, b, c, d, e] = ids
  const find = async (query: string) =>
    (await client.ask('GET', JOBS, `${JOBS}?${query}`)).json.jobs.map(({ id }: { id: string }) => id)
  assert.deepEqual(await find('status=failed'), [d, b])
  assert.deepEqual(await find('code=node_execution_error'), [d, b])
  for (const wrong of [
    'clas=FakeSave',
    'q=%00',
    'code=a%00',
    'class=%00',
    'engine=%00',
    'pool=%00',
    'weights=%00',
    'meta.a=%00',
  ])
    assert.equal((await call(app.url, `/console/v1/jobs?${wrong}`)).status, 400, wrong)
  assert.deepEqual(await find('class=FakeSave'), [e, c, a])
  assert.deepEqual(await find('meta.scene=3'), [d])
  assert.deepEqual(await find('q=fakefail'), [d, b])
  assert.deepEqual(await find(`q=${a}`), [a])
  assert.deepEqual(await find('sort=oldest'), ids)
  assert.deepEqual(await find('until=2020-01-01T00:00:00Z'), [])
  const first = (await client.ask('GET', JOBS, `${JOBS}?limit=2&class=FakeSave`)).json
  assert.deepEqual([first.jobs.length, first.counts], [2, null])
  const next = await client.ask('GET', JOBS, `${JOBS}?limit=2&class=FakeSave&cursor=${first.next_cursor}`)
  assert.deepEqual([next.json.jobs.map(({ id }: { id: string }) => id), next.json.next_cursor], [[a], null])
  for (const query of ['status=x', 'limit=0', 'limit=101', 'sort=x', 'since=x', 'meta.%20=1', 'cursor=x', 'q=a&q=b'])
    assert.equal((await client.ask('GET', JOBS, `${JOBS}?${query}`)).status, 400, query)
  assert.equal((await client.ask('GET', JOBS, `${JOBS}?limit=2&cursor=${first.next_cursor}`)).status, 400)
})

test('an account finds its own jobs only', async () => {
  await using shared = await startShared()
  const [ann, bob] = [await shared.account('ann'), await shared.account('bob')]
  const client = createConsoleClient(shared.url, ann.key)
  const id = await client.submit(SAVE)
  const other = createConsoleClient(shared.url, bob.key)
  for (const query of ['', '?class=FakeSave', `?q=${id}`, '?counts=1'])
    assert.deepEqual((await other.ask('GET', JOBS, `${JOBS}${query}`)).json.jobs, [])
  assert.equal((await client.ask('GET', JOBS)).json.jobs.length, 1)
})
