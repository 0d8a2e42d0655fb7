import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, test } from 'node:test'
import { waitUntil } from '../wait-until.ts'
import { openFaultProxy } from './fault-proxy.ts'

/** Sends everything back. */
async function openEcho() {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    socket.pipe(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    [Symbol.dispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function dial(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1' })
  socket.on('error', () => {})
  return socket
}

/** However it ends. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

async function ask(socket: Socket, text: string): Promise<string> {
  socket.write(text)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  return answer.toString()
}

describe('a link with faults', () => {
  test('carries bytes both ways, and leads elsewhere when it is told to', async () => {
    using first = await openEcho()
    using second = await openEcho()
    await using proxy = await openFaultProxy({ target: first.port })
    const early = dial(proxy.port)
    assert.equal(await ask(early, 'one'), 'one')
    proxy.aim(second.port)
    assert.equal(await ask(early, 'two'), 'two')
    assert.equal(await ask(dial(proxy.port), 'three'), 'three')
    assert.deepEqual([first.sockets.length, second.sockets.length], [1, 1])
  })

  test('that is cut resets what is open and whatever comes, until it is open again', async () => {
    using echo = await openEcho()
    await using proxy = await openFaultProxy({ target: echo.port })
    const open = dial(proxy.port)
    await ask(open, 'one')
    proxy.set({ kind: 'cut' })
    await closed(open)
    await closed(dial(proxy.port))
    proxy.set({ kind: 'open' })
    assert.equal(await ask(dial(proxy.port), 'two'), 'two')
  })

  test('that is silent holds the bytes back and loses none', async () => {
    using echo = await openEcho()
    await using proxy = await openFaultProxy({ target: echo.port })
    const socket = dial(proxy.port)
    await ask(socket, 'one')
    proxy.set({ kind: 'silent' })
    const answer = ask(socket, 'two')
    const late = ask(dial(proxy.port), 'three')
    const raced = await Promise.race([answer, late, new Promise((resolve) => setTimeout(resolve, 50, 'nothing'))])
    assert.equal(raced, 'nothing')
    proxy.set({ kind: 'open' })
    assert.deepEqual(await Promise.all([answer, late]), ['two', 'three'])
  })

  test('that is half open ends for the far side at once and for the near side later', async () => {
    using echo = await openEcho()
    await using proxy = await openFaultProxy({ target: echo.port })
    const socket = dial(proxy.port)
    await ask(socket, 'one')
    const far = echo.sockets[0] as Socket
    const farClosed = closed(far)
    proxy.set({ kind: 'half-open' })
    await farClosed
    assert.equal(socket.closed, false)
    proxy.set({ kind: 'open' })
    await closed(socket)
  })

  test('keeps the order of what it carries also in a process that is late', async () => {
    using echo = await openEcho()
    await using proxy = await openFaultProxy({ target: echo.port })
    const socket = dial(proxy.port)
    assert.equal(await ask(socket, 'open'), 'open')
    const words = Array.from({ length: 300 }, (_, index) => `${index} `)
    let got = ''
    socket.on('data', (bytes: Buffer) => {
      got += bytes.toString()
    })
    const beLate = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
    for (const [index, word] of words.entries()) {
      proxy.set({ kind: 'open', delayMs: index % 50 < 40 ? 40 : 0 })
      socket.write(word)
      // Until it was read on the other side of the proxy, and a little longer.
      for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve))
      beLate(index % 20 === 19 ? 60 : 1 + (index % 3))
    }
    await waitUntil(() => got.length === words.join('').length)
    assert.equal(got, words.join(''))
    socket.destroy()
  })

  test('that is slow keeps the order of what it carries', async () => {
    using echo = await openEcho()
    await using proxy = await openFaultProxy({ target: echo.port })
    proxy.set({ kind: 'open', delayMs: 20 })
    const socket = dial(proxy.port)
    const parts: string[] = []
    socket.on('data', (bytes) => parts.push(bytes.toString()))
    for (let index = 0; index < 5; index += 1) socket.write(`${index}`)
    while (parts.join('').length < 5) await once(socket, 'data')
    assert.equal(parts.join(''), '01234')
  })
})
