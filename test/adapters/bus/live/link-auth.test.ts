/** Who may open a link, and who may answer one. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { WebSocketServer } from 'ws'
import { createLinkAuth } from '../../../../src/adapters/bus/live/link-auth.ts'
import { openSocketTransport } from '../../../../src/adapters/bus/live/socket-transport.ts'

const [KEY, OTHER_KEY] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)]
const NOW = new Date('2026-01-01T00:00:00Z')

function authOf(self: string, keys = [KEY], now = NOW) {
  return createLinkAuth({ keys, self, now: () => now })
}

test('two processes with the same key prove it to each other', () => {
  const [one, other] = [authOf('one'), authOf('other')]
  const greeting = one.greet('other', 0)
  const answer = other.check(greeting.text)
  assert.equal(answer?.from, 'one')
  assert.equal(greeting.isAnswered(answer?.proof), true)
  assert.equal(greeting.isAnswered(undefined), false)
  assert.equal(one.greet('other', 0).isAnswered(answer?.proof), false, 'a proof belongs to one greeting')
})

test('a greeting is taken once, for a minute, and by nobody else', () => {
  const one = authOf('one')
  const other = authOf('other')
  const { text } = one.greet('other', 0)
  assert.notEqual(other.check(text), null)
  assert.equal(other.check(text), null, 'said again')
  assert.equal(authOf('third').check(text), null, 'meant for another one')
  for (const [shiftMs, isTaken] of [
    [-60_000, true],
    [60_000, true],
    [-60_001, false],
    [60_001, false],
  ] as const) {
    const late = authOf('other', [KEY], new Date(NOW.getTime() + shiftMs))
    assert.equal(late.check(one.greet('other', 0).text) !== null, isTaken, `${shiftMs} ms`)
  }
})

test('a wrong key, a changed word and nonsense are refused', () => {
  const other = authOf('other')
  assert.equal(other.check(authOf('one', [OTHER_KEY]).greet('other', 0).text), null)
  const { text } = authOf('one').greet('other', 0)
  for (const forged of [
    text.replace('from=one', 'from=two'),
    text.replace(/at=\d+/, `at=${NOW.getTime() + 1}`),
    text.replace(/mac=(.)/, (_, first) => `mac=${first === '_' ? '-' : '_'}`),
    text.slice(0, -1),
    `${text} `,
    'Bearer x',
    '',
    'x'.repeat(10_000),
    undefined,
  ])
    assert.equal(other.check(forged), null, String(forged).slice(0, 80))
})

test('keys are changed one process after the other: all are accepted, the newest one greets', () => {
  const changed = authOf('one', [OTHER_KEY, KEY])
  const before = authOf('other', [KEY])
  assert.equal(changed.keyCount, 2)
  assert.equal(before.check(changed.greet('other', 0).text), null)
  assert.notEqual(before.check(changed.greet('other', 1).text), null)
  assert.notEqual(changed.check(before.greet('one', 0).text), null)
})

async function openListener(self: string, keys: Uint8Array[]) {
  const auth = createLinkAuth({ keys, self, now: () => new Date() })
  const transport = await openSocketTransport({ auth, host: '127.0.0.1', port: 0 })
  let accepted = 0
  transport.accept(() => {
    accepted++
    return { onFrame() {}, onClosed() {} }
  })
  return { transport, accepted: () => accepted }
}

test('over a socket: nobody without the key is let in, nobody without it is believed, a former key is tried', async () => {
  const [one, other] = [await openListener('one', [OTHER_KEY, KEY]), await openListener('other', [KEY])]
  await using _one = one.transport
  await using _other = other.transport
  const stranger = await openListener('stranger', [OTHER_KEY])
  await using _stranger = stranger.transport
  const events = { onFrame() {}, onClosed() {} }
  const signal = new AbortController().signal
  const at = (id: string, port: number) => ({ id, address: `http://127.0.0.1:${port}` })
  const channel = await one.transport.dial(at('other', other.transport.port), events, signal)
  assert.equal(other.accepted(), 1)
  channel.close()
  await assert.rejects(stranger.transport.dial(at('other', other.transport.port), events, signal), /secret key/)
  await assert.rejects(one.transport.dial(at('gone', other.transport.port), events, signal), /another process/)
  const impostor = new WebSocketServer({ port: 0, host: '127.0.0.1' })
  await once(impostor, 'listening')
  const { port } = impostor.address() as AddressInfo
  await assert.rejects(one.transport.dial(at('other', port), events, signal), /does not have the secret key/)
  impostor.close()
  assert.equal(other.accepted(), 1)
})

test('the listener answers nothing but links', async () => {
  const { transport, accepted } = await openListener('one', [KEY])
  await using _transport = transport
  const ask = (head: string) =>
    new Promise<string>((resolve) => {
      const socket = connect(transport.port, '127.0.0.1')
      let answer = ''
      socket.setEncoding('utf8').on('data', (text) => {
        answer += text
      })
      socket.on('close', () => resolve(answer.split('\r\n')[0]))
      socket.write(head)
    })
  const upgrade = 'Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  assert.match(await ask('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), / 404 /)
  assert.match(await ask('POST /live HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n'), / 404 /)
  assert.match(await ask(`GET /live HTTP/1.1\r\n${upgrade}${key}\r\n`), / 401 /)
  assert.match(await ask(`GET /live HTTP/1.1\r\n${upgrade}${key}Authorization: Bearer x\r\n\r\n`), / 401 /)
  assert.equal(accepted(), 0)
})

test('a stranger who is refused and does not hang up keeps no connection', async () => {
  const transport = await openSocketTransport({ auth: authOf('one'), host: '127.0.0.1', port: 0 })
  const stranger = connect({ host: '127.0.0.1', port: transport.port, allowHalfOpen: true })
  stranger.on('error', () => {})
  stranger.write('GET /live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
  let answer = ''
  stranger.on('data', (bytes) => {
    answer += bytes
  })
  await once(stranger, 'end')
  assert.match(answer, /^HTTP\/1\.1 401 /)
  // Ends only once the listener has no connection left.
  await transport[Symbol.asyncDispose]()
  stranger.destroy()
})
