import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { holdOpen } from './raw-connections.ts'

const IDLE_MS = 60_000

test('a connection outlives its idle time while it is held, and no longer than that', async () => {
  const waits: (number | undefined)[] = []
  const server = createServer((request, response) => {
    const { socket } = response
    holdOpen(response, IDLE_MS * 3)
    // What the socket's timer says when the idle time of all connections is over; then, when it was held for as long as it may be.
    socket?.emit('timeout')
    waits.push(socket?.timeout)
    if (request.url === '/once') response.end()
    else socket?.emit('timeout')
  })
  server.setTimeout(IDLE_MS).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    assert.equal((await fetch(`http://127.0.0.1:${port}/once`)).status, 200)
    await assert.rejects(fetch(`http://127.0.0.1:${port}/never`))
    assert.deepEqual(waits, [IDLE_MS * 2, IDLE_MS * 2])
  } finally {
    server.close()
    server.closeAllConnections()
  }
})
