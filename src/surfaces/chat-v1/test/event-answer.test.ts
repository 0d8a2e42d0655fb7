import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import type { FastifyReply } from 'fastify'
import { EventAnswer } from '../event-answer.ts'

test('a reader that takes nothing is let go once it is too far behind', async () => {
  const { promise: asked, resolve } = Promise.withResolvers<ServerResponse>()
  const server = createServer((_request, response) => resolve(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nhost: here\r\n\r\n')
  socket.pause()
  const raw = await asked
  const answer = new EventAnswer({ raw, hijack() {}, getHeaders: () => ({}) } as unknown as FastifyReply, () => {})
  answer.begin('text/event-stream', null)
  const chunk = Buffer.alloc(1024 * 1024)
  let written = 0
  for (; written < 64 && !raw.destroyed; written++) answer.write(chunk)
  assert.ok(raw.destroyed)
  assert.ok(written > 4, String(written))
  answer.write(chunk)
  answer.end()
  socket.destroy()
  server.close()
  await once(server, 'close')
})
