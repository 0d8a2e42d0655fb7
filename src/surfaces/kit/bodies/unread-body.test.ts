import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { finished } from 'node:stream/promises'
import { test } from 'node:test'
import { createTurns } from '../../../../lib/waiting/turns.ts'
import { createBodyMemory } from './body-memory.ts'
import { dropRestOf } from './unread-body.ts'

test('the chunks that are dropped are told like those that are read', async () => {
  const told: number[] = []
  const bodies = createBodyMemory({
    totalBytes: 10,
    perCallerBytes: 10,
    turns: createTurns(),
    onTransferred: (bytes) => told.push(bytes),
  })
  const given = { method: 'POST', headers: {}, complete: false, socket: new EventEmitter() }
  const request = Object.assign(new PassThrough(), given) as unknown as PassThrough & IncomingMessage
  bodies.admit(request, new EventEmitter() as ServerResponse)
  dropRestOf(request)
  request.write(Buffer.alloc(1000))
  request.end(Buffer.alloc(234))
  await finished(request)
  assert.deepEqual(told, [1000, 234])
  assert.equal(bodies.heldBytes(), 0)
})
