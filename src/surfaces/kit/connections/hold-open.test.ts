import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { holdOpen } from './hold-open.ts'

const IDLE_MS = 20

test('a connection outlives its idle time while it is held, and no longer than that', async () => {
  const server = createServer((request, response) => {
    holdOpen(response, IDLE_MS * 2)
    // The first time is the idle time of all connections; after the second one nobody holds this one any more.
    if (request.url === '/once') response.socket?.once('timeout', () => response.end())
  })
  server.setTimeout(IDLE_MS).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  try {
    assert.equal((await fetch(`http://127.0.0.1:${port}/once`)).status, 200)
    await assert.rejects(fetch(`http://127.0.0.1:${port}/never`))
  } finally {
    server.close()
    server.closeAllConnections()
  }
})
