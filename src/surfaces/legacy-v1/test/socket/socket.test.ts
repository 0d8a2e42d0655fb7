/** The socket on its own: handshake, who is let in, who gets what, and how sockets end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sendRaw } from '../../../../../test/support/clients/raw-http.ts'
import { isText, type RefusedHandshake, type TextFrame } from '../../../../../test/support/clients/test-socket.ts'
import { waitUntil } from '../../../../../test/support/wait-until.ts'
import type { Caller } from '../../../../domain/accounts/caller.ts'
import { isEnd, JOB, outline, runSampler, startSockets, type TestSockets } from './start-sockets.ts'

/** Both ends of a connection close in turns of the loop. */
async function untilOpen(rig: TestSockets, count: number): Promise<void> {
  await waitUntil(() => rig.sockets.stats().open === count)
}

test('the first frame tells the queue and the id; without a client id a new one is made', async () => {
  await using rig = await startSockets()
  rig.live.set('ada', 3)
  const named = await rig.connect('token=ada&clientId=c1')
  await named.untilCount(1)
  assert.deepEqual(named.frames[0], {
    type: 'status',
    data: { status: { exec_info: { queue_remaining: 3 } }, sid: 'c1' },
  })
  const nameless = await rig.connect('token=ada&clientId=', { path: '/api/ws' })
  await nameless.untilCount(1)
  assert.match(String((nameless.frames[0] as TextFrame).data['sid']), /^[0-9a-f]{32}$/)
})

test('empty flags are answered and change nothing; any other first word is not answered', async () => {
  await using rig = await startSockets()
  const empty = await rig.connect()
  empty.ws.send('{"type":"feature_flags","data":{}}')
  await empty.until((frame) => isText(frame, 'feature_flags'))
  const other = await rig.connect()
  other.ws.send('[1]')
  other.ws.send('{"type":"feature_flags","data":{"supports_preview_metadata":true}}')
  other.ws.ping()
  await new Promise((resolve) => other.ws.once('pong', resolve))
  runSampler(rig)
  await empty.until(isEnd)
  await other.until(isEnd)
  assert.ok(outline(empty.frames).includes('binary 1'))
  assert.ok(outline(other.frames).includes('binary 1'))
  assert.ok(!outline(other.frames).includes('feature_flags'))
})

test('all sockets of an account hear the same, whatever their client id; another account hears nothing', async () => {
  await using rig = await startSockets()
  const mine = await Promise.all(['clientId=a', 'clientId=b', 'clientId=a'].map((id) => rig.connect(`token=ada&${id}`)))
  const foreign = await rig.connect('token=eve&clientId=a')
  runSampler(rig)
  await Promise.all(mine.map((socket) => socket.until(isEnd)))
  const [first, ...others] = mine.map((socket) => JSON.stringify(socket.frames.slice(1)))
  for (const other of others) assert.equal(other, first)
  foreign.ws.ping()
  await new Promise((resolve) => foreign.ws.once('pong', resolve))
  assert.deepEqual(outline(foreign.frames), ['status 0'])
})

test('a wrong or missing key is refused before the handshake, in the envelope', async () => {
  await using rig = await startSockets()
  await assert.rejects(rig.connect(''), (error: RefusedHandshake) => {
    assert.equal(error.status, 401)
    assert.equal(JSON.parse(error.body).error.code, 'unauthorized')
    return true
  })
  const byHeader = await rig.connect('', { headers: { 'X-API-Key': 'ada' } })
  await byHeader.untilCount(1)
})

test('a page of another site, a foreign host and one socket too many are refused', async () => {
  await using rig = await startSockets({ maxSocketsPerAccount: 1 })
  const statusOf = (query: string, headers?: Record<string, string>) =>
    rig.connect(query, { headers }).then(
      () => 101,
      (error: RefusedHandshake) => error.status,
    )
  assert.equal(await statusOf('token=ada', { Origin: 'https://elsewhere.example' }), 403)
  const only = await rig.connect()
  assert.equal(await statusOf('token=ada'), 429)
  assert.equal(await statusOf('token=bob'), 101)
  await only.close()
  await untilOpen(rig, 1)
  assert.equal(await statusOf('token=ada'), 101)
})

test('a request that asks for another protocol, or elsewhere, is answered as if it had not asked', async () => {
  await using rig = await startSockets()
  const url = rig.server.url
  const upgrade = (path: string, protocol: string) =>
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade, close\r\nUpgrade: ${protocol}\r\nX-API-Key: ada\r\n\r\n`
  const elsewhere = await sendRaw({ url, bytes: upgrade('/nowhere', 'websocket') })
  assert.equal(elsewhere?.status, 404)
  const other = await sendRaw({ url, bytes: upgrade('/ws', 'h2c') })
  assert.equal(other?.status, 404)
  const halfHearted = await sendRaw({ url, bytes: upgrade('/ws', 'websocket') })
  assert.equal(halfHearted?.status, 400)
  assert.match(JSON.parse(halfHearted?.body ?? '').error.message, /Sec-WebSocket-Key/)
})

test('while jobs are under way the queue is told again and again, and the store heals a wrong count', async () => {
  await using rig = await startSockets()
  const socket = await rig.connect()
  await socket.untilCount(1)
  rig.ticker.advance(5_000)
  rig.move(JOB, 'queued')
  rig.live.set('ada', 4)
  rig.ticker.advance(5_000)
  await socket.untilCount(3)
  assert.deepEqual(outline(socket.frames), ['status 0', 'status 1', 'status 4'])
})

test('a reader that is sent much and answers nothing is closed; one that is sent nothing may be silent', async () => {
  await using rig = await startSockets({ sockets: { limits: { silenceBytes: 1000 } } })
  const [busy, stalled, idle] = await Promise.all([rig.connect(), rig.connect(), rig.connect('token=eve')])
  await Promise.all([busy, stalled, idle].map((socket) => socket.untilCount(1)))
  stalled.ws.pause()
  idle.ws.pause()
  rig.ticker.advance(5_000)
  for (let round = 1; round < 5; round++) {
    runSampler(rig)
    await busy.untilCount(1 + 14 * round)
    // A reader that reads has answered our ping by the time that its own ping is answered.
    busy.ws.ping()
    await new Promise((resolve) => busy.ws.once('pong', resolve))
    rig.ticker.advance(5_000)
  }
  assert.equal(rig.sockets.stats().readersGivenUp, 1)
  stalled.ws.resume()
  assert.equal(await stalled.closed, 1008)
  for (const { ws } of [busy, idle]) assert.equal(ws.readyState, ws.OPEN)
  idle.ws.resume()
})

test('a socket is closed within a second once its caller would not be let in any more, and only that one', async () => {
  const ended = new Set<string>()
  await using rig = await startSockets({ gate: { isWelcome: ({ accountId }) => !ended.has(accountId) } })
  const [gone, stays] = await Promise.all([rig.connect(), rig.connect('token=eve')])
  await Promise.all([gone, stays].map((socket) => socket.untilCount(1)))
  ended.add('ada')
  rig.ticker.advance(1_000)
  runSampler(rig)
  assert.equal(await gone.closed, 1008)
  assert.equal(gone.frames.length, 1)
  assert.equal(stays.ws.readyState, stays.ws.OPEN)
  await untilOpen(rig, 1)
})

test('a socket is closed at once when it is told that credentials have changed', async () => {
  const ended = new Set<string>()
  const listeners = new Set<() => void>()
  const isWelcome = ({ accountId }: Caller) => !ended.has(accountId)
  const onCredentialsChanged = (listener: () => void) => {
    listeners.add(listener)
    return () => void listeners.delete(listener)
  }
  await using rig = await startSockets({ gate: { isWelcome, onCredentialsChanged } })
  const [gone, stays] = await Promise.all([rig.connect(), rig.connect('token=eve')])
  ended.add('ada')
  for (const listener of listeners) listener()
  assert.equal(await gone.closed, 1008)
  assert.equal(stays.ws.readyState, stays.ws.OPEN)
})

test('when the service ends, sockets are told so and none is left', async () => {
  const rig = await startSockets()
  const sockets = await Promise.all([rig.connect(), rig.connect('token=eve')])
  await Promise.all(sockets.map((socket) => socket.untilCount(1)))
  await rig.server.close()
  assert.deepEqual(await Promise.all(sockets.map((socket) => socket.closed)), [1001, 1001])
  await untilOpen(rig, 0)
  assert.equal(rig.ticker.count(), 0)
})
