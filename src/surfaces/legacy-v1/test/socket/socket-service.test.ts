/** The socket in the whole service: one job seen from v1 and v2, the recorded first frames, keys, metrics and the end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { startTestApp, type TestApp } from '../../../../../test/support/app/start-app.ts'
import { startShared } from '../../../../../test/support/app/start-shared.ts'
import { openEvents } from '../../../../../test/support/clients/event-reader.ts'
import {
  type Frame,
  isText,
  openSocket,
  type RefusedHandshake,
  type TestSocket,
  type TextFrame,
} from '../../../../../test/support/clients/test-socket.ts'
import { createFakeEngine } from '../../../../../test/support/engines/fake-engine.ts'
import { type RecordedText, readRecording } from '../../../../../test/support/recordings/recorded-runs.ts'
import { ask } from '../../../../../test/support/recordings/replay-recording.ts'
import { waitUntil } from '../../../../../test/support/wait-until.ts'

const WORKFLOW = {
  1: { class_type: 'FakeSource', inputs: {} },
  2: { class_type: 'FakeSave', inputs: { source: ['1', 0], text: 'picture', count: 1 } },
}

const GATE = {
  1: { class_type: 'FakeGate', inputs: {} },
  2: { class_type: 'FakeSave', inputs: { source: ['1', 0] } },
}

const connect = ({ url }: Pick<TestApp, 'url'>, path = '/ws?clientId=me') =>
  openSocket(new WebSocket(`${url.replace('http', 'ws')}${path}`, { perMessageDeflate: false }))

const isEnd = (frame: Frame) => isText(frame, 'executing') && frame.data['node'] === null
const isEndOf = (frame: Frame, id: unknown) => isEnd(frame) && (frame as TextFrame).data['prompt_id'] === id

async function post(url: string, path: string, body: object): Promise<Record<string, unknown>> {
  const answer = await ask(url, path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify(body),
  })
  return answer.body as Record<string, unknown>
}

test('a job of v2 is watched over the socket of v1, and a prompt of v1 is read through v2', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const socket = await connect(app)
  const { id } = await post(app.url, '/api/v2/jobs', { workflow: WORKFLOW })
  await socket.until((frame) => isEndOf(frame, id))
  const types = socket.frames.map((frame) => ('type' in frame ? frame.type : 'binary'))
  for (const type of ['execution_start', 'executing', 'executed', 'execution_success'])
    assert.ok(types.includes(type), type)
  const { prompt_id: promptId } = await post(app.url, '/prompt', { prompt: WORKFLOW, client_id: 'me' })
  await socket.until((frame) => isEndOf(frame, promptId))
  const job = (await ask(app.url, `/api/v2/jobs/${promptId}`)).body as { status: string; outputs: unknown[] }
  assert.equal(job.status, 'succeeded')
  assert.equal(job.outputs.length, 1)
  const history = (await ask(app.url, `/history/${id}`)).body as object
  assert.deepEqual(Object.keys(history), [id])
})

/** The jobs that a socket was told about. */
const jobsOf = ({ frames }: TestSocket) => [
  ...new Set(frames.flatMap((frame) => ('type' in frame ? ((frame.data['prompt_id'] as string) ?? []) : []))),
]

test('local: a prompt is told to the client that submitted it, and to everybody when none was named', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const [a, twin, b] = await Promise.all(['a', 'a', 'b'].map((id) => connect(app, `/ws?clientId=${id}`)))
  const nameless = await connect(app, '/ws')
  await nameless.untilCount(1)
  const sid = String((nameless.frames[0] as TextFrame).data['sid'])
  const byClient: Record<string, unknown> = {}
  for (const client of ['a', 'b', sid, 'nobody here']) {
    byClient[client] = (await post(app.url, '/prompt', { prompt: WORKFLOW, client_id: client }))['prompt_id']
  }
  const inExtraData = (await post(app.url, '/prompt', { prompt: WORKFLOW, extra_data: { client_id: 'b' } }))[
    'prompt_id'
  ]
  const forAll = [await post(app.url, '/prompt', { prompt: WORKFLOW, client_id: '' })]
  forAll.push(await post(app.url, '/prompt', { prompt: WORKFLOW }))
  const [empty, last] = forAll.map((answer) => answer['prompt_id'])
  await Promise.all([a, twin, b, nameless].map((socket) => socket.until((frame) => isEndOf(frame, last))))
  assert.deepEqual(jobsOf(a), [byClient['a'], empty, last])
  assert.deepEqual(jobsOf(twin), jobsOf(a))
  assert.deepEqual(jobsOf(b), [byClient['b'], inExtraData, empty, last])
  assert.deepEqual(jobsOf(nameless), [byClient[sid], empty, last])
})

test('several accounts: every socket of the account hears every job of it, whatever client submitted it', async () => {
  await using shared = await startShared()
  const [ada, eve] = [await shared.account('ada'), await shared.account('eve')]
  const mine = await Promise.all(
    ['clientId=a', 'clientId=b', ''].map((query) => connect(shared, `/ws?${query}&token=${ada.key}`)),
  )
  const foreign = await connect(shared, `/ws?clientId=a&token=${eve.key}`)
  const body = JSON.stringify({ prompt: WORKFLOW, client_id: 'a' })
  const { json } = await ada.call('/api/prompt', { method: 'POST', body })
  await Promise.all(mine.map((socket) => socket.until((frame) => isEndOf(frame, json.prompt_id))))
  for (const socket of mine) assert.deepEqual(jobsOf(socket), [json.prompt_id])
  assert.deepEqual(jobsOf(foreign), [])
})

test('a prompt that a restart interrupts is still told to its client, and to nobody else', async () => {
  const engine = createFakeEngine()
  const before = await startTestApp({ overrides: { engine } })
  const { prompt_id: id } = await post(before.url, '/prompt', { prompt: GATE, client_id: 'a' })
  await using app = await before.restart()
  const [a, b] = await Promise.all(['a', 'b'].map((client) => connect(app, `/ws?clientId=${client}`)))
  await a.until((frame) => isText(frame, 'executing'))
  engine.openGate()
  await a.until((frame) => isEndOf(frame, id))
  const { prompt_id: after } = await post(app.url, '/prompt', { prompt: WORKFLOW })
  await Promise.all([a, b].map((socket) => socket.until((frame) => isEndOf(frame, after))))
  assert.deepEqual(jobsOf(a), [id, after])
  assert.deepEqual(jobsOf(b), [after])
})

test('the first frames are those that were recorded', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const recorded = readRecording('edge-cases') as unknown as Record<string, RecordedText>
  const shapeOf = (frame: Frame | RecordedText) =>
    JSON.stringify(frame).replace(/"sid":"[0-9a-f]{32}"/, '"sid":"32 hex"')
  const nameless = await connect(app, '/ws')
  await nameless.untilCount(1)
  assert.equal(shapeOf(nameless.frames[0]), shapeOf(recorded['ws without clientId, first frame']))
  const named = await connect(app, '/api/ws?clientId=zz')
  await named.untilCount(1)
  assert.equal(shapeOf(named.frames[0]), shapeOf(recorded['/api/ws, first frame']))
})

test('when the end is told, the history has it', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const socket = await connect(app)
  for (const end of ['execution_success', 'executing']) {
    const before = socket.frames.length
    const { prompt_id: id } = await post(app.url, '/prompt', { prompt: WORKFLOW, client_id: 'me' })
    const isIt = (frame: Frame) => (end === 'executing' ? isEnd(frame) : isText(frame, end))
    await socket.until((frame) => socket.frames.indexOf(frame) >= before && isIt(frame))
    const history = (await ask(app.url, `/history/${id}`)).body as object
    assert.deepEqual(Object.keys(history), [id])
  }
})

test('a client that comes back in the middle of its run is told where it is', async () => {
  const engine = createFakeEngine()
  await using app = await startTestApp({ overrides: { engine } })
  const first = await connect(app, '/ws?clientId=mine')
  await post(app.url, '/prompt', { prompt: GATE, client_id: 'mine' })
  await first.until((frame) => isText(frame, 'executing'))
  await first.close()
  const back = await connect(app, '/ws?clientId=mine')
  await back.untilCount(2)
  assert.deepEqual(back.frames[1], { type: 'executing', data: { node: '1' } })
  engine.openGate()
  await back.until(isEnd)
})

test('with a token: as query parameter or header, and 401 before the handshake without', async () => {
  await using app = await startTestApp({ settings: { token: 'a-token-of-some-length' } })
  await assert.rejects(connect(app), (error: RefusedHandshake) => {
    assert.equal(error.status, 401)
    assert.deepEqual(Object.keys(JSON.parse(error.body)), ['code', 'message', 'error'])
    return true
  })
  const socket = await connect(app, '/ws?token=a-token-of-some-length')
  await socket.untilCount(1)
})

test('event streams and sockets of an account share one bound, and are refused with one word', async () => {
  await using shared = await startShared()
  const { key, call } = await shared.account('ada', { streams: 2 })
  const body = JSON.stringify({ workflow: GATE })
  const { json: job } = await call('/api/v2/jobs', { method: 'POST', body, headers: { 'idempotency-key': 'one' } })
  const events = `/api/v2/jobs/${job.id}/events`
  const authorization = { Authorization: `Bearer ${key}` }
  const socket = await connect(shared, `/ws?token=${key}`)
  using first = openEvents(shared.url, events, authorization)
  await first.next()
  assert.equal((await shared.admin('GET', '/accounts/ada')).json.use.streams, 2)
  const refused = await call(events)
  assert.deepEqual([refused.status, refused.json.error.code], [429, 'too_many_streams'])
  await assert.rejects(connect(shared, `/ws?token=${key}`), (error: RefusedHandshake) => {
    assert.deepEqual([error.status, JSON.parse(error.body).code], [429, 'too_many_streams'])
    return true
  })
  await socket.close()
  // Its place is free once the service has seen the end, too.
  await waitUntil(async () => (await shared.admin('GET', '/accounts/ada')).json.use.streams <= 1)
  using second = openEvents(shared.url, events, authorization)
  await second.next()
  await assert.rejects(connect(shared, `/ws?token=${key}`), (error: RefusedHandshake) => error.status === 429)
})

test('the address of the socket without a handshake is a clear 400', async () => {
  await using app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  for (const path of ['/ws', '/api/ws']) assert.equal((await ask(app.url, path)).status, 400)
})

test('the metrics count open sockets, and a service that ends closes them', async () => {
  const app = await startTestApp({ overrides: { engine: createFakeEngine() } })
  const sockets: TestSocket[] = [await connect(app), await connect(app, '/ws?clientId=b')]
  await Promise.all(sockets.map((socket) => socket.untilCount(1)))
  const metrics = await (await fetch(`${app.url}/metrics`)).text()
  assert.match(metrics, /^atelier_sockets 2$/m)
  assert.match(metrics, /^atelier_socket_previews_dropped 0$/m)
  assert.match(metrics, /^atelier_socket_readers_closed 0$/m)
  await app[Symbol.asyncDispose]()
  assert.deepEqual(await Promise.all(sockets.map((socket) => socket.closed)), [1001, 1001])
})
