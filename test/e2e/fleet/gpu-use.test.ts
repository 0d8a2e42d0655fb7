/** What jobs took of servers is what the servers say that they computed, however a run ends. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type FleetApp, pictureGraph, startFleetApp } from '../../support/app/fleet-app.ts'
import { ADMIN_TOKEN } from '../../support/app/join-worker.ts'
import { call } from '../../support/clients/call.ts'
import { createConsoleClient } from '../../support/clients/console-client.ts'
import { shortBounds } from '../../support/engines/comfy-test-bounds.ts'
import { waitUntil } from '../../support/wait-until.ts'

const PERIOD = 'from=2020-01-01&to=2021-01-01'
const STEPS = {
  '1': { class_type: 'DemoSteps', inputs: { steps: 12, ms: 5, preview: false } },
  '2': { class_type: 'SaveImage', inputs: { images: ['1', 0], filename_prefix: 'x' } },
}

interface Row {
  readonly key: string
  readonly gpu_seconds: number
  readonly runs: number
}

async function usage(app: FleetApp, by: string): Promise<{ rows: Row[]; total_gpu_seconds: number; runs: number }> {
  return (await createConsoleClient(app.url).ask('GET', '/usage/gpu', `/usage/gpu?by=${by}`)).json
}

async function secondsOf(app: FleetApp, jobId: string): Promise<number> {
  return (await createConsoleClient(app.url).ask('GET', '/jobs/{id}', `/jobs/${jobId}`)).json.gpu_seconds
}

const computedBy = ({ fakes }: FleetApp) =>
  fakes.flatMap(({ executions }) => executions).reduce((sum, { computedMs }) => sum + (computedMs ?? 0), 0) / 1000

for (const isJoined of [false, true]) {
  describe(`what jobs took of servers${isJoined ? ' of a joined worker' : ''}`, { concurrency: 2 }, () => {
    test('is what they say, by job, class, weights, server and pool', async () => {
      await using app = await startFleetApp({ isJoined, servers: [{ checkpoints: ['a.safetensors'] }] })
      const picture = await app.submit(pictureGraph(1, 'a.safetensors'))
      await app.until(picture, 'succeeded')
      const steps = await app.submit(STEPS)
      await app.until(steps, 'succeeded')
      const [one, other] = app.fakes[0].executions.map(({ computedMs }) => (computedMs ?? 0) / 1000)
      assert.deepEqual([await secondsOf(app, picture), await secondsOf(app, steps)], [one, other])
      const total = computedBy(app)
      for (const by of ['pool', 'server']) {
        const { rows, total_gpu_seconds: sum, runs } = await usage(app, by)
        assert.deepEqual([rows.length, rows[0]?.gpu_seconds, sum, runs], [1, total, total, one > 0 ? 2 : 1])
      }
      const byJob = new Map((await usage(app, 'job')).rows.map(({ key, gpu_seconds: seconds }) => [key, seconds]))
      assert.deepEqual([byJob.get(picture) ?? 0, byJob.get(steps)], [one, other])
      const classes = (await usage(app, 'class')).rows
      const ofNodes = classes.reduce((sum, { gpu_seconds: seconds }) => sum + seconds, 0)
      assert.ok(classes.some(({ key }) => key === 'DemoSteps') && ofNodes <= total + 1e-9, JSON.stringify(classes))
      const weights = (await usage(app, 'weights')).rows
      assert.deepEqual(
        weights.map(({ key, gpu_seconds: seconds }) => [key, seconds]),
        one > 0 ? [['a.safetensors', one]] : [],
      )
    })

    test('counts each attempt, also one that is canceled or fails', async () => {
      const bounds = shortBounds('vanishedMs')
      await using app = await startFleetApp({ isJoined, servers: [{ nodeMs: 20 }], bounds })
      const [fake] = app.fakes
      fake.hold('running')
      const canceled = await app.submit(pictureGraph(2))
      await fake.held('running')
      await call(app.url, `/api/v2/jobs/${canceled}/cancel`, { method: 'POST' })
      await app.until(canceled, 'canceled')
      fake.release('running')
      fake.faults.raises = { type: 'ValueError', message: 'no' }
      const failed = await app.submit(pictureGraph(3))
      await app.until(failed, 'failed')
      fake.faults.raises = null
      const [one, other] = fake.executions.map(({ computedMs }) => (computedMs ?? 0) / 1000)
      assert.ok(one > 0 && other > 0)
      assert.deepEqual([await secondsOf(app, canceled), await secondsOf(app, failed)], [one, other])
      // The server forgets what it runs: nobody knows better than we do how long it took.
      fake.hold('running')
      const lost = await app.submit(pictureGraph(4))
      await fake.held('running')
      const events = `/console/v1/jobs/${lost}`
      await waitUntil(async () => (await call(app.url, events)).json.status === 'running')
      await fake.restart()
      fake.release('running')
      await app.until(lost, 'succeeded')
      const last = (fake.executions.at(-1)?.computedMs ?? 0) / 1000
      const row = (await usage(app, 'job')).rows.find(({ key }) => key === lost)
      assert.ok(row !== undefined && row.runs === 2 && row.gpu_seconds > last, JSON.stringify(row))
    })

    test('is in the metrics of the process that serves', async () => {
      await using app = await startFleetApp({ isJoined, servers: [{ nodeMs: 5 }], adminToken: ADMIN_TOKEN })
      const id = await app.submit(pictureGraph(5))
      await app.until(id, 'succeeded')
      const seconds = await secondsOf(app, id)
      const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
      const text = await waitUntil(async () => {
        const found = (await call(app.url, '/metrics', { headers })).text
        return found.includes('atelier_gpu_seconds_total{') ? found : null
      })
      const line = /^atelier_gpu_seconds_total\{engine="[^"]+",pool="default"\} (\S+)$/m.exec(text)
      assert.equal(
        Number(line?.[1]),
        seconds,
        text
          .split('\n')
          .filter((each) => each.includes('gpu'))
          .join('\n'),
      )
      assert.match(text, /^atelier_gpu_class_seconds_total\{class="(EmptyImage|SaveImage)"\} /m)
    })
  })
}

test('what a period and a group are is checked', async () => {
  await using app = await startFleetApp({ servers: [{}] })
  const client = createConsoleClient(app.url)
  const { json } = await client.ask('GET', '/usage/gpu', `/usage/gpu?by=server&${PERIOD}`)
  assert.deepEqual([json.rows, json.total_gpu_seconds, json.series.length, json.rest_gpu_seconds], [[], 0, 366, null])
  for (const query of ['by=account', 'by=model', 'tz=Nowhere', 'from=2030-01-01', 'x=1'])
    assert.equal((await client.ask('GET', '/usage/gpu', `/usage/gpu?${query}`)).status, 400, query)
})
