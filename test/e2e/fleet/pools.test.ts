/** Several pools on one ComfyUI server: deployments of one service, services beside each other, and one server under two names. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { type FakeComfy, startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { toPng } from '../../support/engines/fake-comfyui/picture.ts'
import { waitUntil } from '../../support/wait-until.ts'

const POOLS = ['/deployment/one', '/deployment/two', ''] as const
const TERMINAL = ['succeeded', 'failed', 'canceled', 'expired']

// biome-ignore lint/suspicious/noExplicitAny: a job as the API shows it
type Job = any

/** One address of a service, as its clients use it. */
interface Door {
  get(path: string): ReturnType<typeof call>
  post(path: string, body?: object): ReturnType<typeof call>
}

async function submit({ post }: Door, color: number): Promise<string> {
  const { status, json, text } = await post('/api/v2/jobs', { workflow: pictureGraph(color) })
  assert.equal(status, 201, text)
  return json.id
}

async function untilStatus({ get }: Door, id: string, ...wanted: string[]): Promise<Job> {
  return waitUntil(async () => {
    const { json: job } = await get(`/api/v2/jobs/${id}`)
    if (wanted.includes(job.status)) return job
    assert.ok(!TERMINAL.includes(job.status), `it ended ${job.status}: ${JSON.stringify(job.error)}`)
    return null
  })
}

async function checkBytes({ get }: Door, job: Job, color: number): Promise<void> {
  assert.equal(job.outputs.length, 1)
  const { pathname, search } = new URL(job.outputs[0].url)
  const { bytes } = await get(pathname + search)
  assert.deepEqual(bytes, toPng({ width: 8, height: 8, color }))
}

function orderOf(fake: FakeComfy): string[] {
  const jobOf = (graph: object) => /atelier\/([0-9a-f-]{36})-\d+-[0-9a-f]{8}\//.exec(JSON.stringify(graph))?.[1] ?? ''
  return fake.executions.map(({ graph }) => jobOf(graph))
}

describe('deployments over one server', () => {
  let fake: FakeComfy
  let app: SharedApp
  let doors: Door[]
  let color = 0

  before(async () => {
    fake = await startFakeComfy({ nodeMs: 5 })
    const settings = {
      kind: 'serverless',
      deploymentsDomain: 'example.test',
      publicUrl: 'https://api.example.test',
      comfyui: fake.url.href,
    }
    app = await startShared(settings, { patch: { jobs: { cancelGraceMs: 5000 } } })
    const tenant: Tenant = await app.account('team-a', { concurrentJobs: 100, requestsPerMinute: null })
    for (const id of ['one', 'two']) {
      assert.equal((await app.admin('POST', '/deployments', { id, workers: 3 })).status, 201)
      await app.untilDeployment(id, 'ready')
    }
    doors = POOLS.map((prefix) => ({
      // An address within an answer has its prefix already.
      get: (path) => tenant.call(path.startsWith('/api') ? prefix + path : path),
      post: (path, body) => tenant.call(prefix + path, { method: 'POST', body: JSON.stringify(body ?? {}) }),
    }))
  })
  after(async () => {
    await app[Symbol.asyncDispose]()
    await fake[Symbol.asyncDispose]()
  })
  beforeEach(() => {
    ;(fake.executions as unknown[]).length = 0
  })

  test('jobs of all pools run, each once, with their own bytes, and never more at a time than the server takes', async () => {
    let peak = 0
    const watch = setInterval(() => {
      peak = Math.max(peak, fake.queue().remaining())
    }, 1)
    const runs = Array.from({ length: 24 }, async (_, index) => {
      const door = doors[index % doors.length] as Door
      const own = ++color
      await checkBytes(door, await untilStatus(door, await submit(door, own), 'succeeded'), own)
    })
    await Promise.all(runs).finally(() => clearInterval(watch))
    assert.equal(fake.executions.length, 24)
    assert.equal(peak, 1, 'the pools share the one slot that the server has')
  })

  test('a pool with a long queue does not keep the server from another', async () => {
    const [busy, quiet] = doors as [Door, Door]
    fake.hold('running')
    const backlog = await Promise.all(Array.from({ length: 20 }, () => submit(busy, ++color)))
    await fake.held('running')
    const late = await submit(quiet, ++color)
    fake.release('running')
    await untilStatus(quiet, late, 'succeeded')
    await Promise.all(backlog.map((id) => untilStatus(busy, id, 'succeeded')))
    const position = orderOf(fake).indexOf(late)
    assert.ok(position >= 1 && position <= 4, `it came ${position + 1}th of ${fake.executions.length}`)
  })

  test('a cancel in one pool hits its own job and no other, running or waiting', async () => {
    const [one, two] = doors as [Door, Door]
    fake.hold('running')
    const running = await submit(one, ++color)
    await fake.held('running')
    const waiting = await submit(two, ++color)
    assert.equal((await two.post(`/api/v2/jobs/${running}/cancel`)).status, 404, 'it is not theirs to cancel')
    await two.post(`/api/v2/jobs/${waiting}/cancel`)
    await untilStatus(two, waiting, 'canceled')
    assert.equal((await one.get(`/api/v2/jobs/${running}`)).json.status, 'running')
    const next = await submit(two, ++color)
    await one.post(`/api/v2/jobs/${running}/cancel`)
    await untilStatus(one, running, 'canceled')
    fake.release('running')
    await checkBytes(two, await untilStatus(two, next, 'succeeded'), color)
    assert.deepEqual(orderOf(fake), [running, next])
  })

  test('a pool that is stopped in the middle of a run leaves the other its server', async () => {
    const [one, two] = doors as [Door, Door]
    fake.hold('running')
    const last = await submit(one, ++color)
    await fake.held('running')
    assert.equal((await app.admin('POST', '/deployments/one/stop')).status, 200)
    const other = await submit(two, ++color)
    fake.release('running')
    await untilStatus(two, other, 'succeeded')
    await untilStatus(doors[2] as Door, last, 'succeeded')
    await app.admin('POST', '/deployments/one/start')
    await app.untilDeployment('one', 'ready')
  })
})

describe('services over one server', () => {
  function doorOf({ url }: TestApp): Door {
    return {
      get: (path) => call(url, path),
      post: (path, body) => call(url, path, { method: 'POST', body: JSON.stringify(body ?? {}) }),
    }
  }

  test('neither cancels, forgets or ends what the other runs, not even when one of them starts again', async () => {
    await using fake = await startFakeComfy()
    const settings = { comfyui: fake.url.href, drainTimeout: '0s' }
    await using mine = await startTestApp({ settings })
    const theirs = await startTestApp({ settings })
    fake.hold('running')
    const [here, there] = [await submit(doorOf(mine), 1), await submit(doorOf(theirs), 2)]
    await fake.held('running')
    await waitUntil(() => fake.queue().remaining() >= 2)
    await using again = await theirs.restart()
    await untilStatus(doorOf(again), there, 'running')
    await waitUntil(() => fake.queue().remaining() >= 2)
    await doorOf(again).post(`/api/v2/jobs/${there}/cancel`)
    await untilStatus(doorOf(again), there, 'canceled')
    assert.equal((await doorOf(mine).get(`/api/v2/jobs/${here}`)).json.status, 'running')
    fake.release('running')
    await checkBytes(doorOf(mine), await untilStatus(doorOf(mine), here, 'succeeded'), 1)
    assert.equal(orderOf(fake).filter((id) => id === here).length, 1)
  })

  test('a server under two names counts as two servers, and the later one does not end what the earlier one runs', async () => {
    await using fake = await startFakeComfy({ faults: { objectInfoMs: 0 } })
    const names = [fake.url.href, `http://localhost:${fake.port}/`]
    await using app = await startTestApp({ settings: { comfyui: names.join(',') } })
    const door = doorOf(app)
    fake.hold('running')
    const ids = [await submit(door, 1), await submit(door, 2)]
    await Promise.all(ids.map((id) => untilStatus(door, id, 'running')))
    await waitUntil(() => fake.queue().remaining() >= 2)
    fake.release('running')
    for (const [index, id] of ids.entries()) await checkBytes(door, await untilStatus(door, id, 'succeeded'), index + 1)
    assert.equal(fake.executions.length, 2)
  })
})
