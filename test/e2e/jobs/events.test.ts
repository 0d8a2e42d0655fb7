/** Event streams through the whole service. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { CheckedClient, checkFrame, node, refused } from '../../support/clients/checked-client.ts'
import { type EventReader, type Frame, openEvents } from '../../support/clients/event-reader.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SAVE = { '1': node('FakeSave') }

describe('an event stream', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    service = await startTestApp({ settings: { workers: '2' }, overrides: { engine } })
    client = new CheckedClient(service.url)
  })
  after(async () => {
    engine.release()
    await service[Symbol.asyncDispose]()
  })

  const open = (id: string, headers: Record<string, string> = {}) =>
    openEvents(service.url, `/api/v2/jobs/${id}/events`, headers)

  async function nextOf(reader: EventReader, event: string): Promise<Frame> {
    for (;;) {
      const frame = await reader.next()
      assert.ok(frame !== null, `the stream ended before a ${event}`)
      checkFrame(frame)
      if (frame.event === event) return frame
    }
  }

  test('tells everything in order, from the queue to the end, and closes', async () => {
    const gates = [await client.accepted({ '1': node('FakeGate') }), await client.accepted({ '1': node('FakeGate') })]
    for (const { id } of gates) await client.untilStatus(id, 'running')
    const workflow = {
      '1': node('FakeSampler', { steps: 5 }),
      '2': node('FakeSave', { count: 3 }),
      '3': node('FakeGate'),
    }
    const { id } = await client.accepted(workflow)
    using reader = open(id)
    const first = await reader.next()
    assert.deepEqual(first, { event: 'status', data: { status: 'queued', queue_position: 1 } })
    engine.openGate()
    engine.openGate()
    assert.deepEqual((await nextOf(reader, 'status')).data, { status: 'running' })
    const outputs = [await nextOf(reader, 'output'), await nextOf(reader, 'output'), await nextOf(reader, 'output')]
    engine.openGate()
    const rest = await reader.rest()
    for (const frame of rest) checkFrame(frame)
    assert.ok(!rest.some(({ event }) => event === 'output' || event === 'log'))
    const job = await client.job(id)
    assert.deepEqual(
      outputs.map(({ data }) => data),
      job.outputs,
    )
    const end = { status: 'succeeded', queue_position: null, outputs: job.outputs, error: null }
    assert.deepEqual(rest.at(-1), { event: 'status', data: end })
    assert.equal(rest.filter(({ event, data }) => event === 'status' && data.status === 'succeeded').length, 1)
  })

  test('shows progress that never falls, and previews, also to whoever comes later', async () => {
    const workflow = { '1': node('FakeSampler', { steps: 4 }), '2': node('FakeSave'), '3': node('FakeGate') }
    const { id } = await client.accepted(workflow)
    await client.until(id, ({ outputs }) => outputs.length === 1)
    using late = open(id)
    using later = open(id)
    for (const reader of [late, later]) {
      assert.equal((await nextOf(reader, 'status')).data.status, 'running')
      const preview = await nextOf(reader, 'preview')
      assert.deepEqual(preview.data, {
        node_id: '1',
        content_type: 'image/png',
        data_base64: Buffer.from('step 4').toString('base64'),
      })
    }
    engine.openGate()
    for (const reader of [late, later]) {
      const frames = await reader.rest()
      const values = frames.filter(({ event }) => event === 'progress').map(({ data }) => data.value)
      assert.deepEqual(values, values.toSorted())
      assert.equal(frames.at(-1)?.data.status, 'succeeded')
    }
    assert.equal((await client.job(id)).progress?.['value'], 1)
  })

  test('gives every viewer everything, each output exactly once', async () => {
    const { id } = await client.accepted({ '1': node('FakeGate'), '2': node('FakeSave', { count: 12 }) })
    const viewers = Array.from({ length: 5 }, () => client.events(id))
    await client.untilStatus(id, 'running')
    engine.openGate()
    const { outputs } = await client.untilStatus(id, 'succeeded')
    for (const frames of await Promise.all(viewers)) {
      const ids = frames.filter(({ event }) => event === 'output').map(({ data }) => data.id)
      assert.deepEqual(
        ids,
        outputs.map((output) => output.id),
      )
      assert.equal(frames.at(-1)?.data.outputs.length, 12)
    }
  })

  test('of a job that failed ends with its error and what it had made', async () => {
    const { id } = await client.accepted({ '1': node('FakeGate'), '2': node('FakeSave'), '3': node('FakeFail') })
    const watching = client.events(id)
    await client.untilStatus(id, 'running')
    engine.openGate()
    const last = (await watching).at(-1)
    const { error, outputs } = await client.job(id)
    assert.deepEqual(last?.data, { status: 'failed', queue_position: null, outputs, error })
    assert.equal(error?.['message'], 'this node always fails')
  })

  test('of a job that has ended gives its end at once and closes', async () => {
    for (const [workflow, status] of [
      [{ '1': node('FakeSource') }, 'succeeded'],
      [{ '1': node('FakeSave', { count: 2 }) }, 'succeeded'],
      [{ '1': node('FakeFail') }, 'failed'],
    ] as const) {
      const job = await client.run(workflow)
      for (let time = 0; time < 2; time++) {
        const frames = await client.events(job.id)
        // Its outputs, and then the only state that is true of it.
        assert.deepEqual(
          frames.map(({ event }) => event),
          [...job.outputs.map(() => 'output'), 'status'],
        )
        assert.deepEqual(frames.at(-1)?.data, { status, queue_position: null, outputs: job.outputs, error: job.error })
      }
    }
  })

  test('is uncompressed and unbuffered, and ignores Last-Event-ID and other wishes', async () => {
    const { id } = await client.run(SAVE)
    const headers = { 'Accept-Encoding': 'gzip, br', 'Last-Event-ID': '99', Accept: 'application/json' }
    using reader = open(id, headers)
    const lines = (await reader.head).toLowerCase().split('\r\n')
    assert.equal(lines[0], 'http/1.1 200 ok')
    for (const line of [
      'content-type: text/event-stream',
      'cache-control: no-cache',
      'connection: keep-alive',
      'x-accel-buffering: no',
    ]) {
      assert.ok(lines.includes(line), `${line} is not in ${lines.join('\n')}`)
    }
    assert.ok(!lines.some((line) => line.startsWith('content-encoding') || line.startsWith('content-length')))
    assert.ok(lines.some((line) => line.startsWith('x-comfy-request-id: ')))
    assert.equal((await reader.rest()).at(-1)?.data.status, 'succeeded')
  })

  test('is not confused by an engine that repeats itself', async () => {
    engine.faults.duplicateEvents = true
    const { id } = await client.accepted({
      '1': node('FakeSampler', { steps: 3 }),
      '2': node('FakeSave', { count: 2 }),
    })
    const frames = await client.events(id)
    engine.faults.duplicateEvents = false
    assert.equal(frames.filter(({ event }) => event === 'output').length, 2)
    assert.equal(frames.at(-1)?.data.status, 'succeeded')
  })

  test('costs the store no more reads for many viewers than for one', async () => {
    const { id } = await client.accepted({ '1': node('FakeGate'), '2': node('FakeSave') })
    await client.untilStatus(id, 'running')
    using one = open(id)
    await nextOf(one, 'status')
    const viewers = Array.from({ length: 50 }, () => open(id))
    for (const viewer of viewers) await nextOf(viewer, 'status')
    const before = service.app.store.stats().read.operations
    engine.openGate()
    for (const viewer of viewers) await viewer.rest()
    assert.ok(service.app.store.stats().read.operations - before < 20)
    for (const viewer of viewers) viewer[Symbol.dispose]()
  })
})

describe('the number of streams', () => {
  test('is bounded with 429 and Retry-After; a stream that ends or whose client dies makes room; polling goes on', async () => {
    const engine = createFakeEngine()
    await using service = await startTestApp({ patch: { http: { maxStreams: 2 } }, overrides: { engine } })
    const client = new CheckedClient(service.url)
    const { id } = await client.accepted({ '1': node('FakeGate') })
    await client.untilStatus(id, 'running')
    const path = `/api/v2/jobs/${id}/events`
    const first = openEvents(service.url, path)
    const second = openEvents(service.url, path)
    await first.next()
    await second.next()
    for (const other of [path, '/api/v2/jobs/0199b3f4-1d2e-7a3b-8c4d-5e6f70819234/events']) {
      refused(await client.call(other), 429, 'too_many_streams')
    }
    assert.equal((await client.job(id)).status, 'running')
    first.socket.resetAndDestroy()
    using third = await untilOpened(service.url, path)
    refused(await client.call(path), 429, 'too_many_streams')
    engine.openGate()
    assert.equal((await second.rest()).at(-1)?.data.status, 'succeeded')
    await third.rest()
    assert.equal((await client.events(id)).at(-1)?.data.status, 'succeeded')
    assert.equal((await client.events(id)).at(-1)?.data.status, 'succeeded')
  })
})

/** The server hears of a dead client a moment later. */
async function untilOpened(url: string, path: string): Promise<EventReader> {
  const tryIt = async () => {
    const reader = openEvents(url, path)
    if ((await reader.head).startsWith('HTTP/1.1 200')) return reader
    reader[Symbol.dispose]()
    return null
  }
  return waitUntil(tryIt, () => 'the stream of a dead client is freed')
}
