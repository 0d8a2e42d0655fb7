/** Workers come and go: what is wanted of them is said by a process that has none, and nothing is lost on the way. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createClient } from '../../../lib/postgres/driver.ts'
import { pictureGraph } from '../../support/app/fleet-app.ts'
import type { SpawnedServer } from '../../support/app/spawn-server.ts'
import { call } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { RouterClient } from '../../support/clients/router-client.ts'
import {
  ADMIN_TOKEN,
  askAdmin,
  openRoleProcesses,
  type RoleProcesses,
  submitJob,
  untilStatus,
} from '../../support/cluster/role-processes.ts'
import { type FakeComfy, startFakeComfy } from '../../support/engines/fake-comfyui/fake-comfyui.ts'
import { waitUntil } from '../../support/wait-until.ts'

interface PoolWire {
  readonly queued: number
  readonly running: number
  readonly workers: number
  readonly wanted_workers: number
  readonly oldest_wait_seconds: number
}

interface NodeWire {
  readonly role: string
  readonly state: string
  readonly url: string
  readonly holds: { readonly calls: number }
}

describe('a service whose workers come and go', () => {
  const stack = new AsyncDisposableStack()
  let processes: RoleProcesses
  let api: SpawnedServer
  let fake: FakeComfy

  before(async () => {
    processes = stack.use(await openRoleProcesses())
    fake = stack.use(await startFakeComfy({}))
    api = await processes.api()
  })
  after(() => stack.disposeAsync())

  const work = () => processes.worker(['--comfyui', fake.url.href, '--drain-timeout', '60s'])
  const poolNow = async (): Promise<PoolWire> => (await askAdmin(api, '/pools/default')).json
  const untilPool = (fits: (pool: PoolWire) => boolean) =>
    waitUntil(async () => {
      const pool = await poolNow()
      return fits(pool) ? pool : null
    })
  async function attemptsOf(id: string): Promise<number> {
    const client = createClient({ url: processes.databaseUrl })
    await client.connect()
    try {
      return (await client.query('SELECT attempt FROM job_done WHERE id = $1', [id])).rows[0].attempt
    } finally {
      await client.end()
    }
  }
  const nodesNow = async () => (await askAdmin(api, '/nodes')).json.nodes

  test('from no worker to one and back: the job waits, is run, and the worker leaves in order', async () => {
    assert.deepEqual(await poolNow(), {
      ...{ pool: 'default', queued: 0, running: 0, workers: 0 },
      ...{ wanted_workers: 0, oldest_wait_seconds: 0 },
    })
    const id = await submitJob(api, pictureGraph(1))
    const waiting = await untilPool(({ oldest_wait_seconds }) => oldest_wait_seconds > 0)
    assert.partialDeepStrictEqual(waiting, { queued: 1, running: 0, workers: 0, wanted_workers: 1 })
    const { text } = await call(api.url, '/metrics')
    assert.match(text, /^atelier_pool_wanted_workers\{pool="default"\} 1$/m)
    assert.match(text, /^atelier_pool_queued_jobs\{pool="default"\} 1$/m)

    fake.hold('running')
    const worker = await work()
    await untilStatus(api, id, 'running')
    const busy = await untilPool(({ workers }) => workers === 1)
    assert.partialDeepStrictEqual(busy, { queued: 0, running: 1, wanted_workers: 1, oldest_wait_seconds: 0 })
    const held = await waitUntil(async () => (await nodesNow()).find(({ role }: NodeWire) => role === 'worker'))
    assert.partialDeepStrictEqual(held, {
      state: 'alive',
      url: worker.url,
      workers: { default: 1 },
      holds: { jobs: 1 },
    })
    assert.equal(held.holds.engines.length, 1)

    const ended = worker.terminate()
    await waitUntil(async () => (await call(worker.url, '/readyz')).status === 503)
    await waitUntil(async () => (await nodesNow()).some(({ state }: NodeWire) => state === 'draining'))
    fake.release('running')
    assert.equal(await ended, 0)
    assert.equal((await untilStatus(api, id, 'succeeded', 'failed')).status, 'succeeded')
    assert.deepEqual(
      (await nodesNow()).map(({ role }: NodeWire) => role),
      ['api'],
      'its row is gone when it is',
    )
    assert.partialDeepStrictEqual(await poolNow(), { workers: 0, wanted_workers: 0 })
  })

  test('a run that does not end in time is left on its server, wants a worker, and is taken on by the next one', async () => {
    fake.hold('running')
    const first = await processes.worker(['--comfyui', fake.url.href, '--drain-timeout', '0s'])
    const id = await submitJob(api, pictureGraph(2))
    await untilStatus(api, id, 'running')
    assert.equal(await first.terminate(), 0)
    const left = await untilPool(({ workers }) => workers === 0)
    assert.partialDeepStrictEqual(left, { queued: 0, running: 1, wanted_workers: 1 })
    fake.release('running')
    await using second = await work()
    await untilStatus(api, id, 'succeeded')
    assert.equal(await attemptsOf(id), 1, 'the time that was too short is not held against it')
    await second.terminate()
  })

  test('the job of a worker that is killed is wanted again, and is finished by the next', async () => {
    fake.hold('running')
    const first = await work()
    const id = await submitJob(api, pictureGraph(3))
    await untilStatus(api, id, 'running')
    await first.killNow()
    fake.release('running')
    // Its lease lapses within half a minute; then it is dead to the others, and its job waits again.
    await waitUntil(async () => (await nodesNow()).some(({ state }: NodeWire) => state === 'dead'))
    await untilPool(({ wanted_workers, workers }) => wanted_workers === 1 && workers === 0)
    await using second = await work()
    await untilStatus(api, id, 'succeeded')
    await second.terminate()
  })

  test('a process for requests that ends is not ready first, and still serves whoever has not noticed', async () => {
    const leaving = await processes.api(['--drain-delay', '600s'])
    const ended = leaving.terminate()
    const { json } = await waitUntil(async () => {
      const answer = await call(leaving.url, '/readyz')
      return answer.status === 503 ? answer : null
    })
    assert.deepEqual(json, { status: 'not_ready', reason: 'draining', role: 'api' })
    assert.equal((await call(leaving.url, '/healthz')).status, 200)
    await submitJob(leaving, pictureGraph(4))
    await leaving.killNow()
    await ended
  })

  test('its streams are then ended in order, and nothing happens to their jobs', async () => {
    const leaving = await processes.api()
    const id = await submitJob(leaving, pictureGraph(5))
    using events = openEvents(leaving.url, `/api/v2/jobs/${id}/events`, { Accept: 'text/event-stream' })
    assert.match(await events.head, / 200 /)
    assert.equal(await leaving.terminate(), 0)
    assert.ok((await events.rest()).length > 0)
    assert.equal((await call(api.url, `/api/v2/jobs/${id}`)).json.status, 'queued')
  })

  test('a call of a model that was under way gets its answer from the process that ends', async () => {
    const leaving = await processes.api(['--drain-timeout', '120s'])
    const answer = new RouterClient(leaving.url).run('sandbox/echo', { value: 'late', latency_ms: 10_000 })
    await waitUntil(async () =>
      (await nodesNow()).some(({ url, holds }: NodeWire) => url === leaving.url && holds.calls === 1),
    )
    assert.equal(await leaving.terminate(), 0)
    assert.deepEqual((await answer).json, { output: 'late' })
  })

  test('a pool that nobody knows has no figures, and nobody without the token sees any', async () => {
    assert.equal((await askAdmin(api, '/pools/unknown')).status, 404)
    assert.equal((await call(api.url, '/admin/v1/pools/default')).status, 401)
    assert.equal(
      (await call(api.url, '/admin/v1/nodes', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).status,
      200,
    )
  })
})
