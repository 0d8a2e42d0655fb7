/** Servers that load what they are to have before their first job. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { ADMIN_TOKEN as JOIN_ADMIN_TOKEN, joinTestWorker } from '../../support/app/join-worker.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { runInProcess } from '../../support/cli/in-process.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { type FakeComfy, startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { waitUntil } from '../../support/wait-until.ts'

const ADMIN_TOKEN = 'a-token-of-the-operator'
const [A, B] = ['a.safetensors', 'b.safetensors']

/** Its weights are needed for one of its outputs. */
const loadingGraph = (color: number, checkpoint: string) => ({
  ...pictureGraph(color, checkpoint),
  '4': { class_type: 'PreviewAny', inputs: { source: ['3', 0] } },
})

function admin({ url }: { readonly url: string }, method: string, path: string, body?: object): Promise<Answer> {
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  return call(url, `/admin/v1${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) })
}

const engineOf = async (app: { readonly url: string }) => (await admin(app, 'GET', '/engines')).json.engines[0]

async function untilDone({ url }: { readonly url: string }, workflow: object): Promise<void> {
  const made = await call(url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }) })
  assert.equal(made.status, 201, made.text)
  await waitUntil(async () => (await call(url, `/api/v2/jobs/${made.json.id}`)).json.status === 'succeeded')
}

const untilState = (app: { readonly url: string }, state: string) =>
  waitUntil(async () => (await engineOf(app)).state === state)

test('a server loads its weights when that is said, after it came back, and before it takes a job', async () => {
  await using app = await startFleetApp({ servers: [{ checkpoints: [A, B] }], adminToken: ADMIN_TOKEN })
  const [fake] = app.fakes
  fake.hold('running')
  const set = await admin(app, 'PUT', '/engines/gpu1/warm', { weights: [A] })
  assert.deepEqual([set.status, set.json], [200, { weights: [A], workflow: null }], set.text)
  const warming = await fake.held('running')
  assert.equal(warming.graph['1']?.class_type, 'CheckpointLoaderSimple')
  const cold = await engineOf(app)
  assert.deepEqual([cold.state, cold.reason], ['starting', 'it loads what it is to have before its first job'])
  const id = await app.submit(loadingGraph(1, A))
  assert.equal(fake.executions.length, 1, 'the job waits')
  fake.release('running')
  await app.until(id, 'succeeded')
  assert.equal(fake.weightLoads, 1)
  const warm = await engineOf(app)
  assert.deepEqual([warm.state, warm.reason, warm.loaded_weights, warm.jobs], ['ready', null, [A], 1])

  const runs = fake.executions.length
  await fake.restart({ downUntil: untilState(app, 'lost') })
  await untilState(app, 'ready')
  // A server that was started anew counts its loads anew.
  assert.deepEqual([fake.executions.length, fake.weightLoads], [runs + 1, 1])
  await app.until(await app.submit(loadingGraph(2, A)), 'succeeded')
  assert.equal(fake.weightLoads, 1, 'its first job loads nothing')
  assert.deepEqual((await admin(app, 'DELETE', '/engines/gpu1/warm')).json, { weights: [], workflow: null })
  assert.deepEqual((await admin(app, 'GET', '/engines/gpu1/warm')).json, { weights: [], workflow: null })
})

test('what a server cannot load is refused when it is set', async () => {
  await using app = await startFleetApp({ servers: [{ checkpoints: [A] }], adminToken: ADMIN_TOKEN })
  const graph = loadingGraph(3, A)
  const wrong: readonly (readonly [body: object, field: string, message: RegExp])[] = [
    [{}, 'weights', /or a workflow must be given/],
    [{ weights: ['unknown.safetensors'] }, 'weights', /names "unknown.safetensors", which this server does not have/],
    [{ weights: Array.from({ length: 21 }, () => A) }, 'weights', /./],
    [{ workflow: { 1: { class_type: 'NoSuchNode', inputs: {} } } }, 'workflow', /needs NoSuchNode/],
    [{ workflow: loadingGraph(3, B) }, 'workflow', /needs b.safetensors/],
    [
      { workflow: { 1: { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: A } } } },
      'workflow',
      /no node that/,
    ],
    [{ workflow: {} }, 'workflow', /./],
    [{ surprise: true }, 'surprise', /./],
  ]
  for (const [body, field, message] of wrong) {
    const refused = await admin(app, 'PUT', '/engines/gpu1/warm', body)
    assert.equal(refused.status, 422, refused.text)
    if (field !== 'surprise') assert.equal(refused.json.error.field, field, refused.text)
    assert.match(refused.json.error.message, message)
  }
  assert.equal((await admin(app, 'PUT', '/engines/nowhere/warm', { weights: [A] })).status, 404)
  const set = await admin(app, 'PUT', '/engines/gpu1/warm', { workflow: graph })
  assert.deepEqual([set.status, set.json.workflow], [200, graph], set.text)
  await waitUntil(() => app.fakes[0].weightLoads === 1)
})

test('`atelier engines warm` says it, shows it, has it loaded again and takes it back', async () => {
  await using app = await startFleetApp({ servers: [{ checkpoints: [A, B] }], adminToken: ADMIN_TOKEN })
  const env = { ATELIER_ADMIN_TOKEN: ADMIN_TOKEN }
  const atelier = async (...args: string[]) => {
    const flags = ['--url', app.url]
    const { code, stdout, stderr } = await runInProcess(['engines', ...args, ...flags], { cwd: tmpdir(), env })
    assert.equal(code, 0, stdout + stderr)
    return stdout
  }
  assert.equal(await atelier('warm', 'gpu1'), 'it is given work as soon as it answers\n')
  const said = await atelier('warm', 'gpu1', '--weights', A, B)
  assert.equal(said, `it loads ${A}, ${B} before it is given work\n`)
  await waitUntil(() => app.fakes[0].executions.length === 2)
  await untilState(app, 'ready')
  assert.equal(await atelier('warm', 'gpu1'), said)
  await waitUntil(() => app.fakes[0].executions.length === 4)
  assert.equal(await atelier('warm', 'gpu1', '--off'), 'it is given work as soon as it answers\n')
  assert.match(await atelier(), /^gpu1 +ready /m)
})

test('a server that cannot be warmed any more works without, and says why', async () => {
  await using app = await startFleetApp({ servers: [{ checkpoints: [A, B] }], adminToken: ADMIN_TOKEN })
  const [fake] = app.fakes
  await admin(app, 'PUT', '/engines/gpu1/warm', { weights: [B] })
  await untilState(app, 'ready')
  fake.install({ checkpoints: [A] })
  await fake.restart({ downUntil: untilState(app, 'lost') })
  await waitUntil(async () =>
    /could not be warmed: weights names "b.safetensors"/.test((await engineOf(app)).last_error?.message),
  )
  await untilState(app, 'ready')
  await app.until(await app.submit(loadingGraph(4, A)), 'succeeded')
})

test('a server that was taken out of service loads nothing until it is given work again', async () => {
  await using app = await startFleetApp({ servers: [{ checkpoints: [A, B] }], adminToken: ADMIN_TOKEN })
  const [fake] = app.fakes
  await admin(app, 'POST', '/engines/gpu1/cordon')
  const set = await admin(app, 'PUT', '/engines/gpu1/warm', { weights: [A] })
  assert.equal(set.status, 200, set.text)
  await fake.restart({ downUntil: untilState(app, 'lost') })
  await untilState(app, 'cordoned')
  assert.deepEqual([fake.executions.length, (await engineOf(app)).reason], [0, null])
  await admin(app, 'POST', '/engines/gpu1/resume')
  await untilState(app, 'ready')
  assert.equal(fake.weightLoads, 1)
})

test('for a server of a worker that joined it is refused, because nothing would come of it', async () => {
  await using fake: FakeComfy = await startFakeComfy({ checkpoints: [A] })
  await using app = await startTestApp({
    settings: { adminToken: JOIN_ADMIN_TOKEN, joins: 'on' },
    overrides: { engines: [] },
  })
  await using _worker = await joinTestWorker(app, { settings: { comfyui: fake.url.href } })
  const asked = (method: string, path: string, body?: object) =>
    call(app.url, `/admin/v1${path}`, {
      ...{ method, headers: { authorization: `Bearer ${JOIN_ADMIN_TOKEN}` } },
      ...(body && { body: JSON.stringify(body) }),
    })
  const { id } = await waitUntil(async () =>
    (await asked('GET', '/engines')).json.engines.find(({ state }: { state: string }) => state === 'ready'),
  )
  const refused = await asked('PUT', `/engines/${encodeURIComponent(id)}/warm`, { weights: [A] })
  assert.equal(refused.status, 422, refused.text)
  assert.match(refused.json.error.message, /servers of workers that joined load none/)
})

test('what was said is kept over a restart of the service', async () => {
  await using fake: FakeComfy = await startFakeComfy({ checkpoints: [A] })
  const dataDir = await mkdtemp(join(tmpdir(), 'atelier-warm-'))
  const start = (): Promise<TestApp> =>
    startTestApp({ dataDir, settings: { comfyui: fake.url.href, adminToken: ADMIN_TOKEN } })
  try {
    const first = await start()
    const { id } = await engineOf(first)
    await admin(first, 'PUT', `/engines/${encodeURIComponent(id)}/warm`, { weights: [A] })
    await waitUntil(() => fake.weightLoads === 1)
    await untilState(first, 'ready')
    await first.app[Symbol.asyncDispose]()
    const runs = fake.executions.length
    const second = await start()
    await waitUntil(() => fake.executions.length > runs)
    await untilDone(second, loadingGraph(5, A))
    assert.equal(fake.weightLoads, 1, 'the server still had them')
    await second.app[Symbol.asyncDispose]()
    // That of a server that is gone can be taken back.
    await using third = await startTestApp({ dataDir, settings: { adminToken: ADMIN_TOKEN } })
    const path = `/engines/${encodeURIComponent(id)}/warm`
    assert.equal((await admin(third, 'DELETE', path)).status, 200)
    assert.equal((await admin(third, 'DELETE', path)).status, 404)
  } finally {
    await rm(dataDir, { recursive: true, force: true })
  }
})
