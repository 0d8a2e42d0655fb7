/** Jobs through the whole service: what a submit answers, what it refuses, and what a poll shows. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { createFakeEngine, type FakeEngine } from '../../support/engines/fake-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const DAY_MS = 86_400_000
const SAVE = { '1': node('FakeSave') }

async function withFake(
  work: (client: CheckedClient, parts: { engine: FakeEngine; service: TestApp }) => Promise<void>,
  settings: Record<string, string> = {},
): Promise<void> {
  const engine = createFakeEngine()
  await using service = await startTestApp({ settings, overrides: { engine } })
  await work(new CheckedClient(service.url), { engine, service })
  engine.release()
}

describe('a submitted job', () => {
  test('has a time-ordered id, the retention of the service, and labels and priority as they were sent', () =>
    withFake(
      async (client) => {
        const metadata = { scene: '12', 'a.B-c_9': 'Grüße 😀', empty: '' }
        const job = await client.accepted(SAVE, { metadata, priority: -1_000_000, something_new: { ignored: true } })
        assert.match(job.id, UUID_V7)
        assert.equal(Date.parse(job.expires_at) - Date.parse(job.created_at), 3 * DAY_MS)
        assert.deepEqual([job.status, job.queue_position, job.progress, job.started_at], ['queued', 1, null, null])
        assert.deepEqual([job.metadata, job.priority, job.outputs_reused], [metadata, -1_000_000, false])
        const ended = await client.untilStatus(job.id, 'succeeded')
        assert.deepEqual([ended.metadata, ended.priority], [metadata, -1_000_000])
        assert.equal(ended.expires_at, job.expires_at)
        assert.deepEqual((await client.accepted(SAVE)).metadata, {})
      },
      { retention: '3d' },
    ))

  test('has links on the caller’s origin that work, whatever X-Forwarded says', () =>
    withFake(async (client) => {
      const { host, port } = new URL(client.url)
      const { id } = await client.run(SAVE)
      for (const name of [host, `localhost:${port}`]) {
        const headers = {
          host: name,
          'x-forwarded-host': 'evil.test',
          'x-forwarded-proto': 'https',
          'x-forwarded-prefix': '/evil',
          forwarded: 'host=evil.test;proto=https',
        }
        const { json } = await client.call(`/api/v2/jobs/${id}`, { headers })
        assert.doesNotMatch(JSON.stringify(json), /evil/)
        assert.equal(json.outputs[0].url, `http://${name}/api/v2/assets/${json.outputs[0].id}/content`)
        for (const link of Object.values<string>(json.urls)) {
          assert.match(link, /^\/api\//)
          assert.equal(new URL(link, `http://${name}`).host, name)
        }
        assert.equal((await client.call(json.urls.self)).status, 200)
        assert.equal((await client.call(json.urls.logs)).status, 204)
        assert.equal((await client.call(json.urls.cancel, { method: 'POST' })).status, 200)
        assert.equal((await client.call(`/api/v2/assets/${json.outputs[0].id}/content`)).text, 'picture0')
      }
    }))

  test('keeps a seed of 64 bits on its way to the engine and to the workflow read', () =>
    withFake(async (client, { engine }) => {
      const inputs = '"seed":18446744073709551615,"big":123456789012345678901234567890,"cfg":7.0,"tiny":1e-7,"neg":-0.0'
      const answer = await client.submit(`{"workflow":{"1":{"class_type":"FakeSource","inputs":{${inputs}}}}}`)
      assert.equal(answer.status, 201)
      await client.untilStatus(answer.json.id, 'succeeded')
      assert.equal(engine.runs[0].graph.get('1')?.inputs['seed'], 18446744073709551615n)
      const { text } = await client.call(`/api/v2/jobs/${answer.json.id}/workflow`)
      assert.equal(text, `{"workflow":{"1":{"class_type":"FakeSource","inputs":{${inputs}}}},"format":"api"}`)
    }))

  test('shows on a poll what it does: when it started, how far it is, what it has made', () =>
    withFake(async (client, { engine }) => {
      const workflow = { '1': node('FakeSampler', { steps: 4 }), '2': node('FakeSave'), '3': node('FakeGate') }
      const { id } = await client.accepted(workflow)
      const running = await client.until(id, ({ outputs, progress }) => outputs.length > 0 && progress !== null)
      assert.equal(running.status, 'running')
      assert.ok(running.started_at !== null && running.completed_at === null && running.queue_position === null)
      assert.ok(Number.isInteger(running.metrics.queue_ms) && running.metrics.execution_ms === null)
      assert.equal(running.progress?.['nodes_total'], 3)
      const gated = await client.until(id, ({ progress }) => progress?.['current_node'] === '3')
      assert.equal(gated.progress?.['current_node_class'], 'FakeGate')
      assert.equal((await client.call(`/api/v2/assets/${running.outputs[0].id}/content`)).text, 'picture0')
      engine.openGate()
      const ended = await client.untilStatus(id, 'succeeded')
      assert.equal(ended.progress?.['value'], 1)
      assert.ok(ended.completed_at !== null && Number.isInteger(ended.metrics.execution_ms))
      assert.equal(ended.started_at, running.started_at)
      assert.deepEqual(ended.outputs, running.outputs)
    }))

  test('tells where and why it failed, and keeps what it had made', () =>
    withFake(async (client) => {
      const job = await client.run({ '1': node('FakeSave'), '7': node('FakeFail') })
      assert.equal(job.status, 'failed')
      assert.deepEqual(job.error, {
        code: 'node_execution_error',
        message: 'this node always fails',
        node_id: '7',
        class_type: 'FakeFail',
        traceback: 'Traceback (most recent call last): ...',
      })
      assert.equal(job.outputs.length, 1)
      assert.ok((job.progress?.['value'] as number) < 1)
    }))

  test('is not failed by a blocked branch', () =>
    withFake(async (client) => {
      const job = await client.run({ '1': node('FakeBlock'), '2': node('FakeSave') })
      assert.deepEqual([job.status, job.error, job.outputs.length], ['succeeded', null, 1])
      assert.match((await client.call(job.urls.logs)).json.text, /Execution Blocked: nothing for you/)
    }))

  test('is reused only when the engine named cached nodes, and then still has its outputs', () =>
    withFake(async (client, { engine }) => {
      const first = await client.run(SAVE)
      engine.faults.cached = ['1']
      const again = await client.run(SAVE)
      assert.deepEqual([first.outputs_reused, again.outputs_reused], [false, true])
      assert.equal(again.outputs[0].hash, first.outputs[0].hash)
      assert.notEqual(again.outputs[0].id, first.outputs[0].id)
      engine.faults.cached = []
      assert.equal((await client.run(SAVE)).outputs_reused, false)
    }))

  test('runs before others of lower priority, and after earlier ones of its own', () =>
    withFake(
      async (client, { engine }) => {
        await client.accepted({ '1': node('FakeGate') })
        await engine.untilRuns(1)
        const wanted: [string, number][] = []
        for (const priority of [0, 5, -7, 0, 1_000_000, 5, -7]) {
          const { id } = await client.accepted({ '1': node('FakeSource') }, { priority })
          wanted.push([id, priority])
        }
        const order = wanted.toSorted((a, b) => b[1] - a[1]).map(([id]) => id)
        for (const [index, id] of order.entries()) assert.equal((await client.job(id)).queue_position, index + 1)
        engine.openGate()
        for (const [id] of wanted) await client.untilStatus(id, 'succeeded')
        assert.deepEqual(
          engine.runs.slice(1).map(({ jobId }) => jobId),
          order,
        )
      },
      { workers: '1' },
    ))
})

describe('an engine that is down', () => {
  test('leaves submits and every read working; the job fails only when its attempts are spent', () =>
    withFake(async (client, { engine }) => {
      engine.faults.throwAfter = 0
      const { id } = await client.accepted({ '1': node('FakeGate'), '2': node('FakeSave') })
      await waitUntil(() => engine.runs.length === 2 && engine.activeCount() === 0)
      // The last attempt begins in a second or two, and waits until everything has been read.
      engine.faults.throwAfter = null
      assert.match((await client.job(id)).status, /^(queued|running)$/)
      assert.equal((await client.call('/api/v2/jobs')).status, 200)
      assert.equal((await client.call(`/api/v2/jobs/${id}/workflow`)).status, 200)
      assert.equal((await client.call(`/api/v2/jobs/${id}/logs`)).status, 204)
      engine.openGate()
      const job = await client.untilStatus(id, 'succeeded')
      assert.equal(job.outputs.length, 1)
    }))
})

describe('a job past its retention', () => {
  test('is 404 on every route with its outputs; one that had not ended is shown as expired for a while', async () => {
    const engine = createFakeEngine()
    let aheadMs = 0
    const clock = { now: () => new Date(Date.now() + aheadMs) }
    await using service = await startTestApp({
      settings: { retention: '1h', workers: '1' },
      overrides: { engine, clock },
    })
    const client = new CheckedClient(service.url)
    const done = await client.run(SAVE)
    const running = await client.accepted({ '1': node('FakeHang') })
    await engine.untilRuns(2)
    const queued = await client.accepted(SAVE)
    aheadMs = 3_600_000 + 1000
    for (const { id } of [running, queued]) {
      const expired = await client.untilStatus(id, 'expired')
      assert.ok(expired.completed_at !== null)
      assert.equal((await client.call(`/api/v2/jobs/${id}/workflow`)).status, 200)
      assert.equal((await client.cancel(id)).json.status, 'expired')
      assert.equal((await client.events(id)).at(-1)?.data.status, 'expired')
    }
    for (const rest of ['', '/workflow', '/logs', '/events'])
      refused(await client.call(`/api/v2/jobs/${done.id}${rest}`), 404, 'not_found')
    refused(await client.cancel(done.id), 404, 'not_found')
    refused(await client.call(`/api/v2/assets/${done.outputs[0].id}`), 404, 'not_found')
    refused(await client.call(`/api/v2/assets/${done.outputs[0].id}/content`), 404, 'not_found')
    const listed = await client.call('/api/v2/jobs')
    assert.deepEqual(
      listed.json.jobs.map(({ status }: { status: string }) => status),
      ['expired', 'expired'],
    )
    assert.equal(engine.activeCount(), 0, 'the run was not stopped')
  })
})

describe('the built-in engine', () => {
  let service: TestApp
  let client: CheckedClient
  before(async () => {
    service = await startTestApp()
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  const BLANK = node('EmptyImage', { width: 8, height: 8, batch_size: 1, color: 0 })

  test('one bad output of two refuses the whole workflow, with what is wrong by node and input', async () => {
    const answer = await client.submit({
      workflow: {
        '1': BLANK,
        '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'x' }),
        '12': node('ImageScale', { image: ['1', 0], width: -1, height: 8, upscale_method: 'magic' }),
        '13': node('SaveImage', { images: ['12', 0], filename_prefix: 'x' }),
        '14': node('SaveImage', { images: ['77', 0], filename_prefix: 'x' }),
      },
    })
    refused(answer, 422, 'invalid_workflow')
    const errors = answer.json.error.details.node_errors as Record<string, { field: string; reason: string }[]>
    const reasons = Object.fromEntries(
      Object.entries(errors).map(([id, list]) => [id, list.map(({ field, reason }) => `${field}: ${reason}`).sort()]),
    )
    assert.deepEqual(reasons['12'], [
      'crop: missing_input',
      'upscale_method: value_not_in_list',
      'width: value_smaller_than_min',
    ])
    assert.ok(reasons['14'] !== undefined)
    assert.equal((await client.call('/api/v2/jobs')).json.jobs.length, 0)
  })

  test('an unknown class and a cycle are refused by name', async () => {
    const unknown = await client.submit({ workflow: { '5': node('NoSuchNode') } })
    refused(unknown, 422, 'invalid_workflow')
    assert.equal(unknown.json.error.details.node_errors['5'][0].reason, 'missing_node_type')
    const cycle = {
      '1': node('ImageInvert', { image: ['2', 0] }),
      '2': node('ImageInvert', { image: ['1', 0] }),
      '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'x' }),
    }
    refused(await client.submit({ workflow: cycle }), 422, 'invalid_workflow')
  })

  test('a second run of the same graph reuses results and still has its outputs', async () => {
    const workflow = {
      '1': BLANK,
      '2': node('ImageInvert', { image: ['1', 0] }),
      '3': node('SaveImage', { images: ['2', 0], filename_prefix: 'again' }),
      '4': node('PreviewAny', { source: 'words' }),
    }
    const [first, second] = [await client.run(workflow), await client.run(workflow)]
    assert.deepEqual([first.status, second.status], ['succeeded', 'succeeded'])
    assert.deepEqual([first.outputs_reused, second.outputs_reused], [false, true])
    assert.equal(second.outputs.length, first.outputs.length)
    for (const output of second.outputs) {
      const content = await client.call(`/api/v2/assets/${output.id}/content`)
      assert.deepEqual([content.status, Number(content.headers['content-length'])], [200, output.size_bytes])
      assert.ok(!first.outputs.some(({ id }) => id === output.id))
    }
  })
})

describe('health', () => {
  test('answers without a token and without asking the engine, and counts no job', async () => {
    const engine = createFakeEngine()
    await using service = await startTestApp({ settings: { token: 'a-token-for-tests' }, overrides: { engine } })
    const client = new CheckedClient(service.url)
    const answer = await client.call('/api/v2/health')
    assert.deepEqual([answer.status, answer.json], [200, { status: 'healthy', upstream: 'embedded' }])
    refused(await client.call('/api/v2/jobs'), 401, 'unauthorized')
  })
})
