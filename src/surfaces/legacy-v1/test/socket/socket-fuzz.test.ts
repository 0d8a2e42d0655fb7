/** Random bytes instead of a handshake or a frame: they lead to an answer or a close, never to a crash, a leak or a 5xx. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { WebSocket } from 'ws'
import { openSocket } from '../../../../../test/support/clients/test-socket.ts'
import { startSockets, type TestSockets } from './start-sockets.ts'

let rig: TestSockets
before(async () => {
  rig = await startSockets({ maxSocketsPerAccount: 1000 })
})
after(() => rig[Symbol.asyncDispose]())

async function assertNothingLeft(): Promise<void> {
  for (let turns = 0; rig.sockets.stats().open > 0 && turns < 100_000; turns++) await turn()
  assert.equal(rig.sockets.stats().open, 0)
  assert.equal(rig.ticker.count(), 0)
  const socket = await rig.connect()
  await socket.untilCount(1)
  await socket.close()
}

/** Sends the bytes, hangs up, and gives back what came until the end. */
async function converse(bytes: Uint8Array): Promise<string> {
  const socket = connect(rig.server.port, '127.0.0.1')
  const parts: Buffer[] = []
  socket.on('data', (part) => parts.push(part))
  socket.on('error', () => {})
  await once(socket, 'connect')
  socket.end(bytes)
  await once(socket, 'close')
  return Buffer.concat(parts).toString('latin1')
}

const HANDSHAKE =
  'GET /ws?token=ada&clientId=fuzz HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'

test('any bytes behind a good handshake', async () => {
  const noise = fc.uint8Array({ maxLength: 400 })
  await fc.assert(
    fc.asyncProperty(noise, async (bytes) => {
      const answer = await converse(Buffer.concat([Buffer.from(HANDSHAKE), bytes]))
      assert.match(answer, /^HTTP\/1\.1 101 /)
    }),
    { numRuns: 150, seed: 7 },
  )
  await assertNothingLeft()
})

/** Frames that are almost right: a real head, then random bytes. */
const frame = fc
  .record({
    first: fc.integer({ min: 0, max: 255 }),
    length: fc.constantFrom(0, 1, 5, 125, 126, 127, 254, 255),
    rest: fc.uint8Array({ maxLength: 140 }),
  })
  .map(({ first, length, rest }) => Buffer.concat([Buffer.from([first, 0x80 | length]), rest]))

test('frames with any opcode, any length and any mask', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(frame, { maxLength: 5 }), async (frames) => {
      await converse(Buffer.concat([Buffer.from(HANDSHAKE), ...frames]))
    }),
    { numRuns: 150, seed: 11 },
  )
  await assertNothingLeft()
})

const word = fc.oneof(
  fc.constantFrom('websocket', 'Upgrade', 'h2c', '13', '8', 'dGhlIHNhbXBsZSBub25jZQ==', '', 'x, websocket', '\u00ff'),
  fc.string({ maxLength: 30 }),
)
const clean = (text: string) => text.replace(/[\r\n\0]/g, ' ')

test('any request that asks for an upgrade is answered, and never with a 5xx', async () => {
  const request = fc.record({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'OPTIONS', 'HEAD', 'BREW'),
    path: fc.constantFrom(
      '/ws',
      '/api/ws',
      '/ws/',
      '/ws?token=ada',
      '/ws?clientId=%',
      '/api/v2/jobs',
      '*',
      '//ws',
      '/ws?a=1?b',
    ),
    headers: fc.dictionary(
      fc.constantFrom(
        ...['Upgrade', 'Connection', 'Sec-WebSocket-Key', 'Sec-WebSocket-Version', 'Sec-WebSocket-Protocol'],
        ...['Sec-WebSocket-Extensions', 'Origin', 'Sec-Fetch-Site', 'Authorization', 'X-API-Key', 'Content-Length'],
      ),
      word,
    ),
    host: fc.constantFrom('127.0.0.1', 'elsewhere.example', '', 'a\u0001b'),
  })
  await fc.assert(
    fc.asyncProperty(request, async ({ method, path, headers, host }) => {
      const lines = Object.entries({ Host: host, Upgrade: 'websocket', Connection: 'Upgrade', ...headers })
      const head = lines.map(([name, value]) => `${name}: ${clean(value)}\r\n`).join('')
      const answer = await converse(Buffer.from(`${method} ${path} HTTP/1.1\r\n${head}\r\n`, 'latin1'))
      const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1] ?? 0)
      assert.ok(status === 101 || (status >= 200 && status < 500) || answer === '', answer.slice(0, 200))
    }),
    { numRuns: 200, seed: 13 },
  )
  await assertNothingLeft()
})

test('any text and any binary message is heard without harm', async () => {
  const flags = fc.record({ type: fc.constantFrom('feature_flags', 'other', null), data: fc.jsonValue() })
  const message = fc.oneof(
    fc.jsonValue().map((value) => JSON.stringify(value)),
    flags.map((value) => JSON.stringify(value)),
    fc.string(),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(message, { maxLength: 6 }), fc.uint8Array(), async (texts, bytes) => {
      const socket = await openSocket(new WebSocket(`${rig.url}/ws?token=ada`))
      socket.ws.send(bytes)
      for (const text of texts) socket.ws.send(text)
      await socket.untilCount(1)
      socket.ws.terminate()
    }),
    { numRuns: 60, seed: 17 },
  )
  await assertNothingLeft()
})

test('a message that is too long closes its socket and no other', async () => {
  const other = await rig.connect()
  const loud = await rig.connect()
  loud.ws.send('x'.repeat(100_000))
  assert.equal(await loud.closed, 1009)
  assert.equal(other.ws.readyState, other.ws.OPEN)
  await other.close()
  await assertNothingLeft()
})

test('peers that vanish during the handshake leave nothing behind', async () => {
  for (let index = 0; index < 100; index++) {
    const socket = connect(rig.server.port, '127.0.0.1')
    socket.on('error', () => {})
    await once(socket, 'connect')
    socket.write(HANDSHAKE.slice(0, index % 3 === 0 ? HANDSHAKE.length : 40))
    socket.resetAndDestroy()
  }
  await assertNothingLeft()
})
