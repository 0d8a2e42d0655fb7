/** Processes that only take requests, and processes that only run jobs: together they are the whole service. */
import assert from 'node:assert/strict'
import { tmpdir } from 'node:os'
import { after, before, describe, test } from 'node:test'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import type { SpawnedServer } from '../../support/app/spawn-server.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { call } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { LegacyClient } from '../../support/clients/legacy-client.ts'
import { saveGraph } from '../../support/clients/legacy-graphs.ts'
import { RouterClient, refusedWith } from '../../support/clients/router-client.ts'
import { openRoleProcesses, type RoleProcesses, submitJob, untilStatus } from '../../support/cluster/role-processes.ts'
import { type FakeComfy, startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { waitUntil } from '../../support/wait-until.ts'

describe('two processes for requests and one for jobs', () => {
  const stack = new AsyncDisposableStack()
  let processes: RoleProcesses
  let apis: SpawnedServer[] = []
  let worker: SpawnedServer
  let fake: FakeComfy

  before(async () => {
    processes = stack.use(await openRoleProcesses())
    fake = stack.use(await startFakeComfy({}))
    apis = [await processes.api(), await processes.api()]
    worker = await processes.worker(['--comfyui', fake.url.href])
    // What the engines of the worker can run becomes known to the others within two seconds.
    for (const { url } of apis) {
      await waitUntil(async () => 'SaveImage' in (await new LegacyClient(url).get('/object_info')).json)
    }
  })
  after(() => stack.disposeAsync())

  test('a job that one took and the other watches is run by the third, and its outputs are read anywhere', async () => {
    const [one, two] = apis
    const id = await submitJob(one, pictureGraph(7))
    using events = openEvents(two.url, `/api/v2/jobs/${id}/events`, { Accept: 'text/event-stream' })
    const frames = await events.rest()
    assert.equal(frames.at(-1)?.data.status ?? frames.at(-2)?.data.status, 'succeeded', JSON.stringify(frames))
    const { outputs } = await untilStatus(one, id, 'succeeded')
    const content = await call(two.url, `/api/v2/assets/${outputs[0].id}/content`)
    assert.equal(content.status, 200, content.text.slice(0, 200))
    assert.ok(content.bytes.length > 0)
  })

  test('a cancel through one process ends a run in another', async () => {
    const [one, two] = apis
    fake.hold('running')
    try {
      const id = await submitJob(one, pictureGraph(8))
      await untilStatus(one, id, 'running')
      const canceled = await call(two.url, `/api/v2/jobs/${id}/cancel`, { method: 'POST' })
      assert.ok(canceled.status < 300, canceled.text)
      await untilStatus(one, id, 'canceled')
    } finally {
      fake.release('running')
    }
  })

  test('the legacy API works without an engine beside it', async () => {
    const [one, two] = apis
    const id = await new LegacyClient(one.url).accepted(saveGraph(3))
    const entry = await new LegacyClient(two.url).untilHistory(id)
    assert.equal(entry.status.status_str, 'success', JSON.stringify(entry.status))
  })

  test('models are called where the request arrives; a workflow of the catalogue says why it is not, an endpoint is a job', async () => {
    const router = new RouterClient(apis[0].url)
    assert.deepEqual((await router.run('sandbox/echo', { value: 5 })).json, { output: 5 })
    const local = refusedWith(await router.run('local/text-card', { text: 'Hello' }), 403, 'not_enabled')
    assert.match(local.text, /no built-in engine/)
    const graph = pictureGraph(9)
    const body = JSON.stringify({ name: 'picture', file: graph, declaration: { only: true, inputs: {} } })
    const made = await call(apis[0].url, '/api/v2/endpoints', { method: 'POST', body })
    assert.equal(made.status, 201, made.text)
    const answer = await new RouterClient(apis[1].url).run('local/picture', {}, { key: 'elsewhere' })
    assert.equal(answer.json.files?.length, 1, answer.text)
    const again = await router.run('local/picture', {}, { key: 'elsewhere' })
    assert.deepEqual([again.headers['idempotent-replayed'], again.text], ['true', answer.text])
  })

  test('a command at the database lists them all', async () => {
    const env = { ATELIER_DATABASE: processes.databaseUrl }
    const listed = await runInProcess(['nodes', '--json'], { env, cwd: tmpdir() })
    assert.equal(listed.code, 0, listed.stderr)
    const nodes: { readonly role: string; readonly url: string }[] = JSON.parse(listed.stdout).nodes
    assert.deepEqual(nodes.map(({ role }) => role).sort(), ['api', 'api', 'worker'])
    assert.deepEqual(nodes.map(({ url }) => url).sort(), [...apis, worker].map(({ url }) => url).sort())
  })

  test('a worker answers for its health and nothing else', async () => {
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      assert.equal((await call(worker.url, path)).status, 200, path)
    }
    assert.deepEqual((await call(worker.url, '/readyz')).json, { status: 'ready', reason: null, role: 'worker' })
    for (const path of ['/api/v2/jobs', '/admin/v1/overview', '/docs', '/object_info', '/v2/models', '/ws']) {
      assert.equal((await call(worker.url, path)).status, 404, path)
    }
    const submit = await call(worker.url, '/api/v2/jobs', { method: 'POST', body: '{}' })
    assert.equal(submit.status, 404)
  })
})
