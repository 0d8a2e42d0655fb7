/** A worker that joined over HTTP, seen by the clients and the operator of its service. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import { pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { ADMIN_TOKEN, createWorkerKey, joinTestWorker } from '../../support/app/join-worker.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { findFreePort } from '../../support/network/free-port.ts'
import { waitUntil } from '../../support/wait-until.ts'

const OPERATOR = { authorization: `Bearer ${ADMIN_TOKEN}` }
const STEPS = {
  '1': { class_type: 'DemoSteps', inputs: { steps: 40, ms: 20, preview: true } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
}

describe('a joined worker', () => {
  test('is seen live: progress and previews come in order, and the end comes last', async () => {
    await using app = await startFleetApp({ isJoined: true, servers: [{}] })
    const id = await app.submit(STEPS)
    using events = openEvents(app.url, `/api/v2/jobs/${id}/events`)
    const frames = (await events.rest()).filter(({ event }) => event !== 'comment')
    const names = frames.map(({ event }) => event)
    assert.ok(names.includes('preview'), names.join())
    const last = frames.at(-1)?.data
    assert.equal(last.status ?? last.job?.status, 'succeeded', JSON.stringify(last))
    const { nodes } = (await call(app.url, `/console/v1/jobs/${id}/nodes`)).json
    assert.deepEqual(
      nodes.map((node: { state: string; steps: number | null }) => [node.state, node.steps]),
      [
        ['done', 40],
        ['done', null],
      ],
    )
  })

  for (const credentials of [true, false]) {
    const gets = credentials ? 'gets the credentials of its jobs' : 'gets no credentials'
    test(`whose key was made ${credentials ? 'with' : 'without'} them ${gets}, and the job runs`, async () => {
      const engine = createFakeEngine()
      await using app = await startTestApp({
        settings: { joins: 'on', adminToken: ADMIN_TOKEN },
        overrides: { engines: [] },
      })
      const key = (await createWorkerKey(app.url, credentials ? { credentials } : {})).text
      await using _worker = await joinTestWorker(app, { key, overrides: { engine }, settings: { embedded: 'on' } })
      const extraData = { api_key_comfy_org: 'sk-secret', extra_pnginfo: { workflow: { seed: 12345678901234567890n } } }
      const text = JSON.stringify(extraData, (_key, value) => (typeof value === 'bigint' ? `#${value}#` : value))
      const body = `{"workflow":{"1":{"class_type":"FakeSave","inputs":{}}},"extra_data":${text.replaceAll(/"#(\d+)#"/g, '$1')}}`
      const made = await waitUntil(async () => {
        const answer = await call(app.url, '/api/v2/jobs', { method: 'POST', body })
        return answer.status === 201 ? answer : null
      })
      await waitUntil(async () => (await call(app.url, `/api/v2/jobs/${made.json.id}`)).json.status === 'succeeded')
      const [run] = engine.runs
      assert.equal(run?.extraData?.['api_key_comfy_org'], credentials ? 'sk-secret' : undefined)
      assert.deepEqual(run?.extraData?.['extra_pnginfo'], extraData.extra_pnginfo)
    })
  }

  test('obeys an operator who cordons its engine', async () => {
    await using app = await startFleetApp({ isJoined: true, servers: [{}] })
    const [{ id }] = (await call(app.url, '/admin/v1/engines', { headers: OPERATOR })).json.engines
    assert.match(id, /^gpu1@/)
    const path = `/admin/v1/engines/${encodeURIComponent(id)}/cordon`
    assert.equal((await call(app.url, path, { method: 'POST', headers: OPERATOR })).status, 200)
    await waitUntil(() => app.fleet.find('gpu1').state === 'cordoned')
  })

  test('gives a run back when it ends, and the attempt with it', async () => {
    await using app = await startFleetApp({ isJoined: true, servers: [{}], settings: { drainTimeout: '0ms' } })
    const fake = app.fakes[0]!
    fake.hold('running')
    const id = await app.submit(pictureGraph(1))
    await fake.held('running')
    await app.worker?.drain()
    const job = await waitUntil(async () => {
      const { json } = await call(app.url, `/api/v2/jobs/${id}`)
      return json.status === 'queued' ? json : null
    })
    assert.equal(job.queue_position, 1)
    fake.release('running')
  })

  for (const outage of ['', ' that took longer than its leases'])
    test(`outlasts a restart of its service${outage}: the run goes on, and its end is taken`, async () => {
      const port = await findFreePort()
      await using app = await startFleetApp({ isJoined: true, servers: [{}], settings: { port: String(port) } })
      const fake = app.fakes[0]!
      fake.hold('running')
      const id = await app.submit(pictureGraph(1))
      await fake.held('running')
      const { jobs } = app.service.app.store
      if (outage !== '') await jobs.leave(await jobs.findRuns({}), new Date())
      await using _restarted = await app.service.restart()
      fake.release('running')
      const job = await app.until(id, 'succeeded')
      assert.equal(job.outputs.length, 1)
      assert.equal(fake.executions.length, 1)
    })

  test('that speaks no version of the service is told so, and joins nothing', async () => {
    await using app = await startTestApp({
      settings: { joins: 'on', adminToken: ADMIN_TOKEN },
      overrides: { engines: [] },
    })
    const joining = joinTestWorker(app, { overrides: { engines: [] }, versions: [2, 3], log: silentLog })
    await assert.rejects(joining, /speaks version 1 of the worker protocol, this worker 2 and 3/)
  })

  test('with a key that is not known is refused, and the service that wants none has no such address', async () => {
    await using open = await startTestApp({
      settings: { joins: 'on', adminToken: ADMIN_TOKEN },
      overrides: { engines: [] },
    })
    const { id, text } = await createWorkerKey(open.url)
    await call(open.url, `/admin/v1/workers/keys/${id}/revoke`, { method: 'POST', headers: OPERATOR })
    await assert.rejects(joinTestWorker(open, { overrides: { engines: [] }, key: text }), /refuses the key/)
    await using closed = await startTestApp({ settings: { joins: 'off' }, overrides: { engines: [] } })
    assert.equal((await call(closed.url, '/worker/v1/hello')).status, 404)
  })
})
