/** One job over the whole service: its page, its nodes, its layout, its log, and all of it live. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { startShared } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { assetRef, CheckedClient, node } from '../../support/clients/checked-client.ts'
import { checkAgainstSchema, createConsoleClient } from '../../support/clients/console-client.ts'
import { type EventReader, type Frame, openEvents } from '../../support/clients/event-reader.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const JOB = '/jobs/{id}'
const LOG = { class_type: 'FakeLog', inputs: { text: 'hello\n', times: 3 }, _meta: { title: 'Speaker' } }
const SAVE = { class_type: 'FakeSave', inputs: { text: 'x' } }
const GATE = { class_type: 'FakeGate', inputs: {} }

async function until(reader: EventReader, fits: (frame: Frame) => boolean): Promise<Frame> {
  for (;;) {
    const frame = await reader.next()
    if (frame === null) throw new Error('the stream ended')
    if (fits(frame)) return frame
  }
}

test('a job that failed says where and why, how often others did, and what was tried', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const failing = { '1': SAVE, '4': { class_type: 'FakeFail', inputs: {}, _meta: { title: 'Breaks' } } }
  const ids = [await client.submit(failing), await client.submit(failing, { metadata: { scene: 's'.repeat(100) } })]
  for (const id of ids) await client.untilStatus(id, 'failed')
  const { json } = await client.ask('GET', JOB, `/jobs/${ids[1]}`)
  assert.deepEqual([json.error.code, json.error.node_id, json.error.others_alike], ['node_execution_error', '4', 1])
  assert.equal(json.metadata.scene.length, 100)
  assert.deepEqual([json.wait, json.price], [null, null])
  assert.deepEqual(
    [json.attempts.length, json.attempts[0].number, json.attempts[0].why],
    [1, 1, 'node_execution_error'],
  )
  assert.equal((await call(app.url, json.links.workflow)).status, 200)
  const nodes = (await client.ask('GET', `${JOB}/nodes`, `/jobs/${ids[1]}/nodes`)).json
  const states = Object.fromEntries(nodes.nodes.map((node: { id: string; state: string }) => [node.id, node.state]))
  assert.deepEqual(states, { '1': 'done', '4': 'failed' })
  const [first, failed] = nodes.nodes
  assert.ok(first.started_at <= first.ended_at)
  assert.ok(failed.started_at <= failed.ended_at)
  assert.equal(json.has_layout, false)
  assert.deepEqual([first.outputs, nodes.is_cut], [1, false])
})

test('a job that waits says what it needs, which engines have it, and which of them are busy', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine }, settings: { workers: '1' } })
  const client = createConsoleClient(app.url)
  const first = await client.submit({ '2': GATE })
  await engine.untilRuns(1)
  const waiting = await client.submit({ '2': GATE })
  const { wait } = (await client.ask('GET', JOB, `/jobs/${waiting}`)).json
  assert.deepEqual([wait.position, wait.needs.classes, wait.engines.length], [1, ['FakeGate'], 1])
  assert.deepEqual([wait.engines[0].is_able, wait.estimate_seconds], [true, null])
  engine.openGate()
  engine.openGate()
  for (const id of [first, waiting]) await client.untilStatus(id, 'succeeded')
})

test('lines of the log have their node and time, while the job runs and afterwards', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine } })
  const client = createConsoleClient(app.url)
  const id = await client.submit({ '1': LOG, '2': GATE, '3': { class_type: 'FakeLog', inputs: { text: 'bye\n' } } })
  using live = openEvents(app.url, `/console/v1/jobs/${id}/live`)
  await until(live, ({ event, data }) => event === 'log' && data.n === 2)
  const read = async (query = '') => (await client.ask('GET', `${JOB}/logs`, `/jobs/${id}/logs${query}`)).json
  const running = await read()
  assert.deepEqual([running.is_complete, running.lines.length, running.lines[0].node], [false, 3, '1'])
  engine.openGate()
  await client.untilStatus(id, 'succeeded')
  const ended = await read()
  assert.deepEqual(
    ended.lines.map(({ n, node, text }: { n: number; node: string; text: string }) => [n, node, text]),
    [
      [0, '1', 'hello'],
      [1, '1', 'hello'],
      [2, '1', 'hello'],
      [3, '3', 'bye'],
    ],
  )
  assert.deepEqual([ended.is_complete, ended.is_cut, ended.next], [true, false, null])
  const page = await read('?after=0&limit=2')
  assert.deepEqual([page.lines.map(({ n }: { n: number }) => n), page.next], [[1, 2], 2])
})

test('live: everything as it is, each node that changes, outputs, and the end', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine } })
  const client = createConsoleClient(app.url)
  const id = await client.submit({ '1': SAVE, '2': GATE, '3': SAVE })
  await engine.untilRuns(1)
  using reader = openEvents(app.url, `/console/v1/jobs/${id}/live`)
  assert.equal((await reader.next())?.event, 'status')
  await until(reader, ({ event, data }) => event === 'node' && data.id === '2' && data.state === 'running')
  const during = (await client.ask('GET', `${JOB}/nodes`, `/jobs/${id}/nodes`)).json.nodes
  assert.deepEqual(
    during.map(({ state }: { state: string }) => state),
    ['done', 'running', 'waiting'],
  )
  engine.openGate()
  const rest = await reader.rest()
  assert.equal(rest.filter(({ event }) => event === 'output').length >= 1, true)
  const last = rest.findLast(({ event }) => event === 'status')
  assert.equal(last?.data.status, 'succeeded')
  for (const { event, data } of rest) if (event === 'log') checkAgainstSchema('LogLine', data)
})

test('a node that a cancel stopped is interrupted and ended with its job; one whose turn did not come was skipped', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine } })
  const client = createConsoleClient(app.url)
  const id = await client.submit({
    '1': SAVE,
    '2': { class_type: 'FakeHang', inputs: {} },
    '3': SAVE,
  })
  await engine.untilRuns(1)
  using live = openEvents(app.url, `/console/v1/jobs/${id}/live`)
  await until(live, ({ event, data }) => event === 'node' && data.id === '2' && data.state === 'running')
  await call(app.url, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })
  const told = await until(live, ({ event, data }) => event === 'node' && data.id === '2' && data.state !== 'running')
  await client.untilStatus(id, 'canceled')
  const { completed_at: end } = (await client.ask('GET', JOB, `/jobs/${id}`)).json
  assert.deepEqual([told.data.state, told.data.ended_at], ['interrupted', end])
  const { nodes } = (await client.ask('GET', `${JOB}/nodes`, `/jobs/${id}/nodes`)).json
  assert.deepEqual(
    nodes.map(({ state }: { state: string }) => state),
    ['done', 'interrupted', 'skipped'],
  )
  assert.equal(nodes[1].ended_at, end)
})

test('the layout is where an editor had put the nodes, and nothing else of what it sent', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const workflow = {
    name: 'My poster',
    nodes: [
      { id: 1, pos: [10, 20.5], size: { '0': 300, '1': 80 }, title: 'T', color: '#223' },
      { id: 2, pos: { '0': 5, '1': 6 }, color: 'url(javascript:alert(1))' },
      { id: 3, pos: ['x', null] },
      'no node',
    ],
    groups: [{ title: 'G', bounding: [0, 0, 100, 50], color: '#aabbcc' }, { bounding: [1] }],
  }
  const body = JSON.stringify({ prompt: { '1': SAVE }, extra_data: { extra_pnginfo: { workflow } } })
  const sent = await call(app.url, '/prompt', { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  const id = sent.json.prompt_id
  const { json } = await client.ask('GET', `${JOB}/layout`, `/jobs/${id}/layout`)
  assert.deepEqual(json, {
    nodes: {
      '1': { x: 10, y: 20.5, w: 300, h: 80, title: 'T', color: '#223' },
      '2': { x: 5, y: 6, w: 210, h: 100, title: null, color: null },
    },
    groups: [{ title: 'G', x: 0, y: 0, w: 100, h: 50, color: '#aabbcc' }],
  })
  assert.equal((await client.ask('GET', JOB, `/jobs/${id}`)).json.title, 'My poster')
  const plain = await client.submit({ '1': SAVE })
  assert.equal((await client.ask('GET', `${JOB}/layout`, `/jobs/${plain}/layout`)).status, 404)
})

test('a job keeps the key of its submit, the files that its graph names and its layout, also when it runs again', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const client = createConsoleClient(app.url)
  const uploads = new CheckedClient(app.url)
  const asset = await uploads.uploaded('cat.png', 'a cat', { fields: { content_type: 'image/png' } })
  const pos = [{ id: 1, pos: [10, 20], title: 'Cat' }]
  const body = JSON.stringify({
    workflow: { '1': node('FakeLoad', { image: assetRef(asset.id) }), '2': node('FakeLoad', { image: 'cat.png' }) },
    extra_data: { extra_pnginfo: { workflow: { nodes: pos } } },
  })
  const headers = { 'content-type': 'application/json', 'idempotency-key': 'key-1' }
  const { id } = (await call(app.url, '/api/v2/jobs', { method: 'POST', headers, body })).json
  await client.untilStatus(id, 'succeeded')
  const { json } = await client.ask('GET', JOB, `/jobs/${id}`)
  assert.equal(json.idempotency_key, 'key-1')
  const file = { name: 'cat.png', size_bytes: 5, content_type: 'image/png', asset_id: asset.id }
  assert.deepEqual(json.inputs, [
    { ...file, url: `/api/v2/assets/${asset.id}/content` },
    { ...file, url: `/api/v2/assets/${asset.id}/content` },
  ])
  const { json: operators } = await call(app.url, `/admin/v1/jobs/${id}`)
  for (const field of ['idempotency_key', 'inputs', 'are_inputs_cut', 'has_layout', 'batch_id'])
    assert.deepEqual(operators[field], json[field], `an operator sees ${field} as the owner does`)
  const again = (await client.ask('POST', `${JOB}/rerun`, `/jobs/${id}/rerun`, {})).json.id
  await client.untilStatus(again, 'succeeded')
  const { json: second } = await client.ask('GET', JOB, `/jobs/${again}`)
  assert.deepEqual([second.has_layout, second.idempotency_key, second.inputs.length], [true, null, 2])
  const { json: layout } = await client.ask('GET', `${JOB}/layout`, `/jobs/${again}/layout`)
  assert.deepEqual(layout.nodes, { '1': { x: 10, y: 20, w: 210, h: 100, title: 'Cat', color: null } })
  await uploads.call(`/api/v2/assets/${asset.id}`, { method: 'DELETE' })
  const [gone] = (await client.ask('GET', JOB, `/jobs/${id}`)).json.inputs
  assert.deepEqual([gone.asset_id, gone.url, gone.size_bytes], [null, null, 5])
})

test('a job far behind in a steady queue is told about how long it still waits', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine }, settings: { workers: '1' } })
  const client = createConsoleClient(app.url)
  await client.submit({ '2': GATE })
  await engine.untilRuns(1)
  // Thirty jobs that have run one after the other, ten seconds each, with six of them waiting at any time.
  const { jobs } = app.app.store
  const beganMs = Date.now() - 400_000
  for (let index = 0; index < 30; index += 1) {
    const [id, leaseId, startMs] = [randomUUID(), randomUUID(), beganMs + index * 10_000]
    const createdAt = new Date(startMs - 60_000)
    const recorded = { id, accountId: 'local', pool: 'default', metadata: {}, workflow: '{}', inputs: [], needs: '' }
    const past = { ...recorded, createdAt, expiresAt: new Date(beganMs + 86_400_000), priority: 9 }
    await jobs.submit({ ...past, needsExtraData: false, sealedExtraData: null }, null)
    const [now, leaseUntil] = [new Date(startMs), new Date(Date.now() + 60_000)]
    const engines = [{ engineId: 'embedded', lanes: null }]
    await jobs.claim({ pool: 'default', workerId: 'w', leaseId, leaseUntil, now, engines, maxOvertakes: 0 })
    const finish = { status: 'succeeded', from: ['running'], at: new Date(startMs + 10_000), error: null } as const
    await jobs.commit({ jobId: id, leaseId }, { finish })
  }
  const waiting: string[] = []
  for (let index = 0; index < 5; index += 1) waiting.push(await client.submit({ '2': GATE }))
  const { wait } = (await client.ask('GET', JOB, `/jobs/${waiting[4]}`)).json
  assert.ok(wait.estimate_seconds >= 25 && wait.estimate_seconds <= 100, JSON.stringify(wait))
})

test('a job of another account looks like one that does not exist', async () => {
  await using shared = await startShared()
  const [ann, bob] = [await shared.account('ann'), await shared.account('bob')]
  const id = await createConsoleClient(shared.url, ann.key).submit({ '1': SAVE })
  const other = createConsoleClient(shared.url, bob.key)
  for (const end of ['', '/nodes', '/layout', '/logs', '/live']) {
    const template = `${JOB}${end}`
    const foreign = await other.ask('GET', template, `/jobs/${id}${end}`)
    const none = await other.ask('GET', template, `/jobs/00000000-0000-7000-8000-000000000000${end}`)
    assert.deepEqual([foreign.status, foreign.json.error.code], [404, none.json.error.code], end)
    assert.equal((await other.ask('GET', template, `/jobs/x${end}`)).status, 404)
  }
})
