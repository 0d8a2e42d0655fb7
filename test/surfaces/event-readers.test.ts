/** Many readers, slow readers, dead readers: what a stream may cost, and who pays for it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Caller } from '../../src/domain/accounts/caller.ts'
import { JOB_ID, makeJob, makeOutput, makeProgress } from '../support/app/memory-jobs.ts'
import { startSurface, type TestSurface } from '../support/app/start-surface.ts'
import { openEvents } from '../support/clients/event-reader.ts'
import { createManualTicker } from '../support/manual-ticker.ts'
import { waitUntil } from '../support/wait-until.ts'

const EVENTS = `/api/v2/jobs/${JOB_ID}/events`

const until = (isTrue: () => boolean, what: string) => waitUntil(isTrue, () => what)

test('an idle stream gets a comment before 15 seconds pass, again and again, from one timer', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob())
  using one = openEvents(service.url, EVENTS)
  using two = openEvents(service.url, EVENTS)
  await one.next()
  await two.next()
  assert.equal(ticker.count(), 1)
  for (let round = 0; round < 3; round++) {
    ticker.advance(15_000)
    assert.deepEqual(await one.next(), { event: 'comment', data: 'keepalive' })
    assert.deepEqual(await two.next(), { event: 'comment', data: 'keepalive' })
  }
  one.socket.destroy()
  two.socket.destroy()
  await until(() => ticker.count() === 0, 'the timer stops with the last stream')
})

test('a stream that was written to gets no needless comment', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS)
  await reader.next()
  ticker.advance(10_000)
  service.jobs.change({ progress: makeProgress(0.5) })
  assert.equal((await reader.next())!.event, 'progress')
  ticker.advance(10_000)
  service.jobs.change({ status: 'canceling' })
  assert.equal((await reader.next())!.event, 'status')
})

test('over the limit a stream is refused with Retry-After, and the end of a stream or of its client makes room for another', async () => {
  await using service = await startSurface({ api: { maxStreamsPerAccount: 2 } })
  service.jobs.put(makeJob())
  const one = openEvents(service.url, EVENTS)
  using two = openEvents(service.url, EVENTS)
  await one.next()
  await two.next()
  const refused = await fetch(service.url + EVENTS)
  assert.equal(refused.status, 429)
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
  assert.equal(((await refused.json()) as { error: { code: string } }).error.code, 'too_many_streams')
  const unknown = await fetch(`${service.url}/api/v2/jobs/0199b3f4-1d2e-7a3b-8c4d-000000000000/events`)
  assert.equal(unknown.status, 429, 'the refusal tells nothing about the job')
  assert.equal((await fetch(`${service.url}/api/v2/jobs/${JOB_ID}`)).status, 200, 'polling stays available')
  one.socket.destroy()
  await until(() => service.api.openStreams() === 1, 'the dead client no longer counts')
  using three = openEvents(service.url, EVENTS)
  await three.next()
  service.jobs.change({ status: 'succeeded' })
  await two.rest()
  await three.rest()
  await until(() => service.api.openStreams() === 0, 'ended streams no longer count')
  assert.equal(service.jobs.watcherCount(), 0, 'nobody watches any more')
})

test('a stream ends within a second once its caller would not be let in any more, and only that one', async () => {
  const ticker = createManualTicker()
  const ended = new Set<string>()
  const gate = {
    authenticate: (credential: string | null) => ({
      accountId: 'local',
      keyId: credential,
      scopes: null,
      endpoints: null,
    }),
    isWelcome: ({ keyId }: Caller) => !ended.has(keyId ?? ''),
  }
  await using service = await startSurface({ api: { ticker }, gate })
  service.jobs.put(makeJob())
  using one = openEvents(service.url, EVENTS, { Authorization: 'Bearer one' })
  using two = openEvents(service.url, EVENTS, { Authorization: 'Bearer two' })
  await one.next()
  await two.next()
  ended.add('one')
  ticker.advance(1000)
  service.jobs.change({ progress: makeProgress(0.5) })
  assert.deepEqual(await one.rest(), [{ event: 'comment', data: 'closing' }])
  assert.equal((await two.next())!.event, 'progress')
  await until(() => service.api.openStreams() === 1, 'it no longer counts')
})

test('a stream ends at once when it is told that credentials have changed', async () => {
  const ended = new Set<string>()
  const listeners = new Set<() => void>()
  const gate = {
    authenticate: (credential: string | null) => ({
      accountId: 'local',
      keyId: credential,
      scopes: null,
      endpoints: null,
    }),
    isWelcome: ({ keyId }: Caller) => !ended.has(keyId ?? ''),
    onCredentialsChanged(listener: () => void) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
  {
    // Nobody moves this clock.
    await using service = await startSurface({ api: { ticker: createManualTicker() }, gate })
    service.jobs.put(makeJob())
    using one = openEvents(service.url, EVENTS, { Authorization: 'Bearer one' })
    using two = openEvents(service.url, EVENTS, { Authorization: 'Bearer two' })
    await one.next()
    await two.next()
    ended.add('one')
    for (const listener of listeners) listener()
    assert.deepEqual(await one.rest(), [{ event: 'comment', data: 'closing' }])
    service.jobs.change({ progress: makeProgress(0.5) })
    assert.equal((await two.next())!.event, 'progress')
  }
  assert.equal(listeners.size, 0)
})

/** The one place of an account is free again: also for requests that reach the service only after their clients have left. */
async function assertAllReleased(service: TestSurface): Promise<void> {
  const mayRead = async () => {
    using reader = openEvents(service.url, EVENTS)
    if (!(await reader.head).startsWith('HTTP/1.1 200 ')) return false
    assert.equal((await reader.next())!.event, 'status')
    return true
  }
  await waitUntil(mayRead, () => 'a place for a reader')
  await until(() => service.api.openStreams() === 0 && service.jobs.watcherCount() === 0, 'everything is released')
}

test('a client that leaves while its job is looked up leaves nothing behind', async () => {
  await using service = await startSurface({ api: { maxStreamsPerAccount: 1 } })
  service.jobs.put(makeJob())
  for (let round = 0; round < 5; round++) {
    const reader = openEvents(service.url, EVENTS)
    await once(reader.socket, 'connect')
    reader.socket.destroy()
  }
  await assertAllReleased(service)
})

test('a stream whose look-up failed does not count', async () => {
  await using service = await startSurface({ api: { maxStreamsPerAccount: 1 } })
  for (let round = 0; round < 3; round++) assert.equal((await fetch(service.url + EVENTS)).status, 404)
})

/** Sends previews until the reader's socket is full and the service has begun to skip. */
async function fill(service: TestSurface, ticker: { advance(ms: number): void }): Promise<void> {
  const bytes = Buffer.alloc(512 * 1024, 7)
  for (let round = 0; round < 40; round++) {
    service.jobs.show({ nodeId: '3', contentType: 'image/png', bytes })
    ticker.advance(600)
    await nextTurn()
  }
}

test('a large preview is encoded in short pieces, once for all readers, those that come later included', async (t) => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  const readers = Array.from({ length: 8 }, () => openEvents(service.url, EVENTS))
  await Promise.all(readers.map((reader) => reader.next()))
  const pieces: number[] = []
  const toText = Buffer.prototype.toString
  t.mock.method(Buffer.prototype, 'toString', function (this: Buffer, ...given: Parameters<typeof toText>) {
    const text = toText.apply(this, given)
    if (given[0] === 'base64') pieces.push(text.length)
    return text
  })
  const bytes = Buffer.from(Array.from({ length: 1_000_000 }, (_, at) => (at * at) % 251))
  service.jobs.show({ nodeId: 'ä"3', contentType: 'image/png', bytes })
  readers.push(openEvents(service.url, EVENTS))
  await readers.at(-1)!.next()
  const seen = await Promise.all(readers.map((reader) => reader.next()))
  t.mock.restoreAll()
  for (const reader of readers) reader.socket.destroy()
  const expected = { node_id: 'ä"3', content_type: 'image/png', data_base64: bytes.toString('base64') }
  for (const frame of seen) assert.deepEqual(frame, { event: 'preview', data: expected })
  assert.equal(
    pieces.reduce((sum, length) => sum + length, 0),
    expected.data_base64.length,
  )
  assert.ok(Math.max(...pieces) <= 65_536)
})

test('a slow reader skips to the newest state and misses no output, while others get everything at once', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob())
  using slow = openEvents(service.url, EVENTS)
  await slow.next()
  slow.socket.pause()
  await fill(service, ticker)
  using quick = openEvents(service.url, EVENTS)
  await quick.next()
  await quick.next()
  service.jobs.change({ progress: makeProgress(0.5) })
  service.jobs.change({ outputs: [makeOutput()] })
  service.jobs.change({ progress: makeProgress(0.9) })
  assert.equal((await quick.next())!.event, 'progress')
  assert.equal((await quick.next())!.event, 'output')
  slow.socket.resume()
  let frame = await slow.next()
  while (frame?.event !== 'status') frame = await slow.next()
  const rest = [await slow.next(), await slow.next(), await slow.next()]
  assert.deepEqual(
    rest.map((found) => found!.event),
    ['progress', 'preview', 'output'],
  )
  assert.equal(rest[0]!.data.value, 0.9)
  service.jobs.change({ status: 'succeeded' })
  const last = await slow.rest()
  assert.deepEqual(
    last.map((found) => found.data.status ?? found.event),
    ['succeeded'],
  )
})

test('a slow reader whose job ended meanwhile still gets its outputs and then the end', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob())
  using slow = openEvents(service.url, EVENTS)
  await slow.next()
  slow.socket.pause()
  await fill(service, ticker)
  service.jobs.change({ outputs: [makeOutput()], status: 'succeeded' })
  slow.socket.resume()
  const frames = (await slow.rest()).filter((frame) => frame.event !== 'preview')
  assert.deepEqual(
    frames.map((frame) => frame.event),
    ['output', 'status'],
  )
})

test('a reader that takes nothing for a minute is cut off', async () => {
  const ticker = createManualTicker()
  await using service = await startSurface({ api: { ticker } })
  service.jobs.put(makeJob())
  using stuck = openEvents(service.url, EVENTS)
  await stuck.next()
  stuck.socket.pause()
  await fill(service, ticker)
  ticker.advance(62_000)
  await until(() => service.api.openStreams() === 0, 'the stuck reader is gone')
})

test('a second request on a stream’s connection ends it', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS)
  await reader.next()
  reader.socket.write(`GET /api/v2/health HTTP/1.1\r\nHost: ${new URL(service.url).host}\r\n\r\n`)
  assert.deepEqual(await reader.rest(), [])
})

test('streams end with a closing comment when the service closes', async () => {
  const service = await startSurface()
  service.jobs.put(makeJob())
  using reader = openEvents(service.url, EVENTS)
  await reader.next()
  await service.server.close()
  assert.deepEqual(await reader.rest(), [{ event: 'comment', data: 'closing' }])
  assert.equal(service.jobs.watcherCount(), 0)
})

interface Exchange extends Disposable {
  readonly socket: Socket
  text(): string
}

/** Sends these bytes, ends its side if asked to, and reads on. */
async function exchange({ url }: TestSurface, bytes: string, { halfClose = false } = {}): Promise<Exchange> {
  const { hostname, port } = new URL(url)
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  let text = ''
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part
  })
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.write(bytes)
  if (halfClose) socket.end()
  return { socket, text: () => text, [Symbol.dispose]: () => void socket.destroy() }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`

for (const halfClose of [false, true]) {
  const how = halfClose ? ', by a client that ended its own side' : ''
  test(`a stream behind other answers on one connection comes after them, whole${how}`, async () => {
    await using service = await startSurface()
    service.jobs.put(makeJob())
    const requests = get(`/api/v2/jobs/${JOB_ID}`) + get('/api/v2/jobs/nope') + get('/api/v2/jobs') + get(EVENTS)
    using reader = await exchange(service, requests, { halfClose })
    await until(() => reader.text().includes('event: status'), 'the stream has begun')
    service.jobs.change({ progress: makeProgress(0.5) })
    service.jobs.change({ status: 'succeeded' })
    await once(reader.socket, 'end')
    const heads = [...reader.text().matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status)
    assert.deepEqual(heads, ['200', '404', '200', '200'])
    assert.match(reader.text(), /event: progress\n.*event: status\ndata: \{"status":"succeeded"/s)
    await until(() => service.api.openStreams() === 0, 'it no longer counts')
  })
}

test('a client that ended its own side gets its answers, quick and slow, and its stream to the end', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  for (const path of [`/api/v2/jobs/${JOB_ID}`, '/api/v2/jobs', '/healthz']) {
    using reader = await exchange(service, get(path), { halfClose: true })
    await once(reader.socket, 'end')
    assert.match(reader.text(), /^HTTP\/1\.1 200 /, path)
  }
  using reader = await exchange(service, get(EVENTS), { halfClose: true })
  await until(() => reader.text().includes('event: status'), 'the stream has begun')
  service.jobs.change({ status: 'canceled' })
  await once(reader.socket, 'end')
  assert.match(reader.text(), /data: \{"status":"canceled"/)
})

test('a connection that closes while its stream waits behind other answers leaves nothing behind', async () => {
  await using service = await startSurface({ api: { maxStreamsPerAccount: 1 } })
  service.jobs.put(makeJob())
  for (let round = 0; round < 5; round++) {
    using reader = await exchange(service, get('/api/v2/jobs') + get(EVENTS))
    reader.socket.destroy()
  }
  await assertAllReleased(service)
})
