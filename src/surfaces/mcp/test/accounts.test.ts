import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ADMIN_TOKEN, type SharedApp, startShared, type Tenant } from '../../../../test/support/app/start-shared.ts'
import { waitUntil } from '../../../../test/support/wait-until.ts'
import { connectAgent } from './agent-client.ts'

const CALLS_AT_A_TIME = 32

describe('agents of several accounts', () => {
  let shared: SharedApp
  let ours: Tenant
  let theirs: Tenant
  before(async () => {
    // Nobody answers there: whoever follows the links in answers must find the way back by itself.
    shared = await startShared({ publicUrl: 'http://studio.invalid', sandboxModels: 'on' })
    ours = await shared.account('ours')
    theirs = await shared.account('theirs', { requestsPerMinute: null })
  })
  after(() => shared[Symbol.asyncDispose]())

  const connect = ({ key }: Pick<Tenant, 'key'>) => connectAgent({ url: shared.url, key, way: 'http' })
  const gated = {
    1: { class_type: 'FakeGate', inputs: {} },
    2: { class_type: 'FakeFile', inputs: { filename: 'note.txt', folder: 'output', key: 'text', text: 'made' } },
  }

  test('a connection that dies while it waits leaves the job running and findable', async () => {
    const first = await connect(ours)
    const { json } = await first.use('submit_workflow', { workflow: gated, metadata: { made: 'by an agent' } })
    const watching = assert.rejects(first.use('watch_job', { job_id: json.id, wait_seconds: 600 }))
    await shared.engine.untilRuns(1)
    await first.client.close()
    await watching
    await using second = await connect(ours)
    const listed = await second.use('list_jobs', { status: ['running'] })
    assert.deepEqual(
      listed.json.jobs.map(({ id, metadata }) => ({ id, metadata })),
      [{ id: json.id, metadata: { made: 'by an agent' } }],
    )
    shared.engine.openGate()
    const watched = await second.use('watch_job', { job_id: json.id })
    assert.equal(watched.json.status, 'succeeded', watched.text)
    const [output] = watched.json.outputs
    assert.ok(output.url.startsWith('http://studio.invalid/'), output.url)
    assert.equal((await second.use('get_output', { asset_id: output.asset_id })).text, 'made')
  })

  test('what belongs to another account looks like what does not exist', async () => {
    await using mine = await connect(ours)
    const { json } = await mine.use('list_jobs')
    const [{ id }] = json.jobs
    await using other = await connect(theirs)
    assert.deepEqual((await other.use('list_jobs')).json.jobs, [])
    const unknown = await other.use('get_job', { job_id: id.replace(/.$/, id.endsWith('0') ? '1' : '0') })
    for (const name of ['get_job', 'watch_job', 'cancel_job']) {
      const told = await other.use(name, { job_id: id })
      assert.deepEqual([told.isError, told.text], [true, unknown.text], name)
    }
    await assert.rejects(other.client.readResource({ uri: `atelier://jobs/${id}` }), /not found/i)
  })

  test('a key can do with tools what it can do elsewhere, and no more', async () => {
    const made = await shared.admin('POST', '/accounts/ours/keys', { scopes: ['jobs:read'] })
    await using reader = await connect({ key: made.json.text })
    assert.equal((await reader.use('list_jobs')).isError, false)
    const refused = await reader.use('submit_workflow', { workflow: gated })
    assert.ok(refused.isError)
    assert.match(refused.text, /^forbidden: .*jobs:write/)
  })

  test('a model call that is not waited for is found by its id, and can be called off', async () => {
    await using agent = await connect(ours)
    const input = { text: 'later' }
    const told = await agent.use('run_model', { model: 'sandbox/echo', input, wait_seconds: 0 })
    assert.equal(told.isError, false, told.text)
    const id = told.json.request_id ?? ''
    if (id !== '') {
      const result = await agent.use('get_model_result', { model: 'sandbox/echo', request_id: id })
      assert.equal(result.isError, false, result.text)
    }
    assert.ok((await agent.use('run_model', { model: 'no such', input })).isError)
    assert.ok((await agent.use('cancel_model_call', { model: 'sandbox/echo', request_id: 'none' })).isError)
  })

  test('an account holds only so many calls open, and gets them back', async () => {
    await using agent = await connect(theirs)
    const { json } = await agent.use('submit_workflow', { workflow: gated })
    const stop = new AbortController()
    const watch = (signal?: AbortSignal) =>
      fetch(`${shared.url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${theirs.key}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify({
          ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
          params: { name: 'watch_job', arguments: { job_id: json.id, wait_seconds: signal === undefined ? 0 : 600 } },
        }),
        signal,
      })
    const held = await Promise.all(Array.from({ length: CALLS_AT_A_TIME }, () => watch(stop.signal)))
    assert.deepEqual([...new Set(held.map(({ status }) => status))], [200])
    const refused = await watch()
    assert.equal(refused.status, 429)
    assert.match(await refused.text(), /"jsonrpc":"2.0"/)
    const openStreams = async () => {
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
      const metrics = await (await fetch(`${shared.url}/metrics`, { headers })).text()
      return Number(/^atelier_event_streams (\d+)/m.exec(metrics)?.[1])
    }
    await waitUntil(async () => (await openStreams()) > 0)
    stop.abort()
    await waitUntil(async () => (await openStreams()) === 0)
    await waitUntil(async () => {
      const response = await watch()
      await response.text()
      return response.status === 200
    })
    assert.equal((await agent.use('cancel_job', { job_id: json.id })).isError, false)
  })

  test('a key of some endpoints has their tools, and no other endpoint', async () => {
    const file = { 1: { class_type: 'FakeSource', inputs: {} }, 2: { class_type: 'FakeSave', inputs: { text: 'a' } } }
    for (const name of ['open', 'closed']) {
      const made = await ours.call('/api/v2/endpoints', { method: 'POST', body: JSON.stringify({ name, file }) })
      assert.equal(made.status, 201, made.text)
    }
    const { json } = await shared.admin('POST', '/accounts/ours/keys', { endpoints: ['open'] })
    await using agent = await connect({ key: json.text })
    const tools = (await agent.client.listTools()).tools.map(({ name }) => name)
    assert.deepEqual(
      tools.filter((name) => name.startsWith('run_') && name !== 'run_model'),
      ['run_open'],
    )
    assert.equal((await agent.use('run_open', {})).isError, false)
    await assert.rejects(agent.use('run_closed', {}), /not found/)
    assert.equal((await agent.use('list_jobs')).isError, true)
  })
})
