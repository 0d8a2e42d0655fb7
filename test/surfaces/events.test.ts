/** The event stream as the contract describes it: order, completeness, pace. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isTerminal, JOB_STATUSES } from '../../src/domain/jobs/transitions.ts'
import { ASSET_ID, JOB_ID, makeJob, makeOutput, makeProgress } from '../support/app/memory-jobs.ts'
import { startSurface } from '../support/app/start-surface.ts'
import { checkAgainstSchema } from '../support/clients/check-against-spec.ts'
import { type EventReader, type Frame, openEvents } from '../support/clients/event-reader.ts'
import { createManualTicker } from '../support/manual-ticker.ts'

const EVENTS = `/api/v2/jobs/${JOB_ID}/events`
const OTHER_ASSET = '8c0f4c1e-51f3-4c55-9f43-0d1f4c1e51f4'
const PREVIEW = { nodeId: '3', contentType: 'image/jpeg', bytes: Buffer.from([0xff, 0xd8, 1]) }
const SCHEMAS: Readonly<Record<string, string>> = {
  status: 'StatusEvent',
  progress: 'Progress',
  preview: 'PreviewEvent',
  output: 'Output',
}

function names(frames: readonly Frame[]): string[] {
  return frames.map((frame) => (frame.event === 'status' ? `status ${frame.data.status}` : frame.event))
}

async function take(reader: EventReader, count: number): Promise<Frame[]> {
  const frames: Frame[] = []
  while (frames.length < count) frames.push((await reader.next())!)
  return frames
}

test('a stream shows the present state first, then every change, and ends after the terminal status', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob({ status: 'queued', startedAt: null, queuePosition: 3 }))
  using reader = openEvents(service.url, EVENTS)
  const first = await reader.next()
  assert.deepEqual(first, { event: 'status', data: { status: 'queued', queue_position: 3 } })
  service.jobs.change({ queuePosition: 2 })
  service.jobs.change({ status: 'running', queuePosition: null })
  service.jobs.change({ progress: makeProgress(0.42) })
  service.jobs.show(PREVIEW)
  service.jobs.change({ outputs: [makeOutput()] })
  service.jobs.change({ status: 'succeeded', completedAt: new Date('2026-01-01T00:00:05.000Z') })
  const frames = await reader.rest()
  assert.deepEqual(names(frames), [
    'status queued',
    'status running',
    'progress',
    'preview',
    'output',
    'status succeeded',
  ])
  for (const { event, data } of frames) checkAgainstSchema(SCHEMAS[event], data)
  assert.deepEqual(frames[1].data, { status: 'running' })
  assert.deepEqual(frames[3].data, { node_id: '3', content_type: 'image/jpeg', data_base64: '/9gB' })
  assert.equal(frames[4].data.url, `${service.url}/api/v2/assets/${ASSET_ID}/content`)
  const polled = (await (await fetch(`${service.url}/api/v2/jobs/${JOB_ID}`)).json()) as Record<string, unknown>
  assert.deepEqual(frames[4].data, (polled['outputs'] as unknown[])[0])
  assert.deepEqual(frames[5].data, {
    status: 'succeeded',
    queue_position: null,
    outputs: polled['outputs'],
    error: null,
  })
})

test('the answer is an uncompressed, unbuffered event stream with the common headers', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS, { 'Accept-Encoding': 'gzip, deflate' })
  const head = await reader.head
  assert.match(head, /^HTTP\/1\.1 200 OK\r\n/)
  for (const line of [
    'Content-Type: text/event-stream',
    'Cache-Control: no-cache',
    'Connection: keep-alive',
    'X-Accel-Buffering: no',
    'X-Content-Type-Options: nosniff',
  ]) {
    assert.equal(head.split('\r\n').filter((found) => found === line).length, 1, line)
  }
  assert.match(head, /X-Service-Request-Id: [0-9a-f-]{36}/)
  assert.match(head, /X-Comfy-Request-Id: [0-9a-f-]{36}/)
  assert.doesNotMatch(head, /content-encoding|transfer-encoding|content-length|no-store/i)
})

test('a failed job ends its stream with the error', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS)
  await reader.next()
  const error = { code: 'node_execution_error', message: 'boom', nodeId: '3', classType: 'KSampler', traceback: 'at x' }
  service.jobs.change({ status: 'failed', error })
  const [last] = await reader.rest()
  assert.deepEqual(last.data.error, {
    code: 'node_execution_error',
    message: 'boom',
    node_id: '3',
    class_type: 'KSampler',
    traceback: 'at x',
  })
})

test('outputs that come with the last change still precede the terminal status', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS)
  await reader.next()
  service.jobs.change({ status: 'succeeded', outputs: [makeOutput(), makeOutput(OTHER_ASSET)] })
  assert.deepEqual(names(await reader.rest()), ['output', 'output', 'status succeeded'])
})

test('whoever connects in the middle gets status, progress, preview and each output exactly once', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob({ progress: makeProgress(0.3), outputs: [makeOutput()] }))
  service.jobs.show(PREVIEW)
  using early = openEvents(service.url, EVENTS)
  assert.deepEqual(names(await take(early, 4)), ['status running', 'progress', 'preview', 'output'])
  service.jobs.change({ outputs: [makeOutput(), makeOutput(OTHER_ASSET)] })
  using late = openEvents(service.url, EVENTS)
  assert.deepEqual(names(await take(late, 5)), ['status running', 'progress', 'preview', 'output', 'output'])
  service.jobs.change({ status: 'succeeded' })
  assert.deepEqual(names(await early.rest()), ['output', 'status succeeded'])
  assert.deepEqual(names(await late.rest()), ['status succeeded'])
  assert.equal(service.jobs.calls.watch, 1, 'both readers share one watch')
})

test('connecting after the end gives the outputs, the terminal status, and the end', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob({ status: 'succeeded', outputs: [makeOutput()] }))
  const frames = await openEvents(service.url, EVENTS).rest()
  // The only state that is told is the one that the job has.
  assert.deepEqual(names(frames), ['output', 'status succeeded'])
  assert.equal(frames[1].data.outputs.length, 1)
})

test('connecting after an end without outputs gives the terminal status alone', async () => {
  await using service = await startSurface()
  for (const status of JOB_STATUSES.filter(isTerminal)) {
    service.jobs.put(makeJob({ status, progress: makeProgress(1) }))
    assert.deepEqual(names(await openEvents(service.url, EVENTS).rest()), [`status ${status}`])
  }
})

test('progress never falls, and comes twice a second in the long run', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS)
  await reader.next()
  for (const value of [0.1, 0.2, 0.3, 0.25]) service.jobs.change({ progress: makeProgress(value) })
  assert.deepEqual(
    (await take(reader, 2)).map(({ data }) => data.value),
    [0.1, 0.2],
    'the first two at once',
  )
  ticker.advance(499)
  service.jobs.change({ progress: makeProgress(0.4) })
  service.jobs.change({ outputs: [makeOutput()] })
  assert.equal((await reader.next())!.event, 'output', 'nothing of progress within the half second')
  ticker.advance(1)
  assert.equal((await reader.next())!.data.value, 0.4, 'then the newest, as soon as it may come')
  ticker.advance(5000)
  service.jobs.change({ progress: makeProgress(0.35) })
  service.jobs.change({ status: 'canceling' })
  assert.deepEqual(names([(await reader.next())!]), ['status canceling'])
})

test('previews come twice a second in the long run, and the newest wins', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS)
  await reader.next()
  for (const byte of [1, 2, 3]) service.jobs.show({ ...PREVIEW, bytes: Uint8Array.of(byte) })
  assert.deepEqual(
    (await take(reader, 2)).map(({ data }) => data.data_base64),
    ['AQ==', 'Ag=='],
  )
  ticker.advance(500)
  assert.equal((await reader.next())!.data.data_base64, 'Aw==')
})

test('snapshots that arrive out of order are ignored', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob({ version: 5, status: 'canceling' }))
  using reader = openEvents(service.url, EVENTS)
  assert.equal((await reader.next())!.data.status, 'canceling')
  service.jobs.put(makeJob({ version: 4, status: 'running' }))
  service.jobs.put(makeJob({ version: 6, status: 'canceled' }))
  assert.deepEqual(names(await reader.rest()), ['status canceled'])
})

for (const version of [8, 3]) {
  test(`an end with version ${version} ends the stream of a reader who has seen version 8`, async () => {
    await using service = await startSurface()
    service.jobs.put(makeJob({ version: 8, progress: makeProgress(0.5) }))
    using reader = openEvents(service.url, EVENTS)
    await take(reader, 2)
    service.jobs.put(makeJob({ version, status: 'succeeded', outputs: [makeOutput()] }))
    assert.deepEqual(names(await reader.rest()).slice(-2), ['output', 'status succeeded'])
  })
}

test('a job that is removed while it is watched ends as expired', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob({ outputs: [makeOutput()] }))
  using reader = openEvents(service.url, EVENTS)
  await take(reader, 2)
  service.jobs.remove()
  const frames = await reader.rest()
  assert.deepEqual(names(frames), ['status expired'])
  assert.equal(frames[0].data.outputs.length, 1)
})

test('unknown ids and ids that are none are 404, and Last-Event-ID changes nothing', async () => {
  await using service = await startSurface()
  for (const id of ['0199b3f4-1d2e-7a3b-8c4d-000000000000', 'nope', '..%2F..%2Ffree']) {
    const answer = await fetch(`${service.url}/api/v2/jobs/${id}/events`)
    assert.equal(answer.status, 404)
    const { error } = (await answer.json()) as { error: { code: string } }
    assert.equal(error.code, 'not_found')
  }
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS, { 'Last-Event-ID': '7' })
  assert.equal((await reader.next())!.event, 'status')
})

test('a query on the events address goes the longer way to the same stream', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, `${EVENTS}?x=1`)
  assert.equal((await reader.next())!.event, 'status')
  service.jobs.change({ status: 'succeeded' })
  assert.deepEqual(names(await reader.rest()), ['status succeeded'])
})
