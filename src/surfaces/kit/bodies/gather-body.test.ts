import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { PassThrough } from 'node:stream'
import { finished } from 'node:stream/promises'
import { mock, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createTurns } from '../../../../lib/waiting/turns.ts'
import { type BodyClaim, createBodyMemory } from './body-memory.ts'
import { dropRestOf, gatherBody } from './gather-body.ts'

const OPTIONS = { maxBytes: 10_000_000, deadlineMs: 600_000 }

function createClaim(): BodyClaim & { bytes: number } {
  return {
    bytes: 0,
    turns: createTurns(),
    onTransferred() {},
    caller: '',
    mustFit() {},
    take(bytes) {
      this.bytes += bytes
    },
    hold: () => () => {},
    release() {
      this.bytes = 0
    },
  }
}

function createRequest(headers: IncomingMessage['headers'] = {}): PassThrough & IncomingMessage {
  return Object.assign(new PassThrough(), { headers }) as unknown as PassThrough & IncomingMessage
}

test('the bytes come together in order, declared or not', async () => {
  const chunks = Array.from({ length: 300 }, (_, index) => Buffer.alloc(1000 + index, index % 251))
  const whole = Buffer.concat(chunks)
  for (const headers of [{}, { 'content-length': String(whole.length) }]) {
    const request = createRequest(headers)
    const claim = createClaim()
    const gathering = gatherBody(request, claim, OPTIONS)
    for (const chunk of chunks) request.write(chunk)
    request.end()
    assert.ok((await gathering).equals(whole))
    assert.equal(claim.bytes, whole.length)
  }
})

test('a sender that drips is cut off after the grace, one that keeps a pace is not', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  let nowMs = 0
  t.mock.method(performance, 'now', () => nowMs)
  const pass = async (ms: number) => {
    nowMs += ms
    mock.timers.tick(ms)
    await nextTurn()
  }
  const slow = createRequest()
  const claim = createClaim()
  const refused = assert.rejects(gatherBody(slow, claim, OPTIONS), /arrives too slowly/)
  const steady = createRequest()
  const gathering = gatherBody(steady, createClaim(), OPTIONS)
  for (let second = 0; second < 60; second++) {
    if (second < 15) slow.write('x')
    steady.write(Buffer.alloc(20_000))
    await pass(1000)
    if (second === 20) await refused
  }
  assert.equal(claim.bytes, 0)
  steady.end()
  assert.equal((await gathering).length, 60 * 20_000)
})

test('a body that takes longer than its deadline is refused, whatever its pace', async (t) => {
  mock.timers.enable({ apis: ['setTimeout'] })
  t.after(() => mock.timers.reset())
  const request = createRequest()
  const refused = assert.rejects(gatherBody(request, createClaim(), { ...OPTIONS, deadlineMs: 5000 }), /took too long/)
  mock.timers.tick(5000)
  await refused
})

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
