import assert from 'node:assert/strict'
import { test } from 'node:test'
import { silentLog } from '../../../../lib/log.ts'
import type { EventReading, ProviderResult } from '../provider.ts'
import { type DrivenCall, LiveCall } from './live-calls.ts'
import { relayEvents } from './relay-events.ts'

const REF = { seq: 1, id: 'call', accountId: 'a', owner: 'node', fence: 1 }
const MODEL = { id: 'a/b', provider: 'a' } as LiveCall['model']

/** Passes all on, and is whole when it was ended. */
const plain: EventReading = {
  read: (chunk) => chunk,
  end: (isEnded) => ({
    rest: Buffer.from(isEnded ? '' : 'cut'),
    ...{ isWhole: isEnded, hasOutput: true, usage: { tokens: 3 }, costMicros: null },
  }),
}

function openCall() {
  const live = new LiveCall(REF, MODEL, { hasWaiter: true, isCollectable: false, isKeyed: true })
  const told: string[] = []
  const relay = {
    begin: (type: string) => void told.push(type),
    write: (bytes: Uint8Array) => void told.push(String(bytes)),
  }
  void live.wait({ isConnected: () => true, relay }, 1_000_000).catch(() => {})
  return { live, told, call: { live } as DrivenCall }
}

function toResult(body: AsyncIterable<Uint8Array>): ProviderResult {
  return { body, contentType: 'text/event-stream', usage: null, costMicros: null, events: plain }
}

async function* say(...texts: string[]): AsyncGenerator<Uint8Array> {
  for (const text of texts) yield Buffer.from(text)
}

test('an answer goes to who waits as it comes, and is kept as a whole', async () => {
  const { call, live, told } = openCall()
  const made = await relayEvents(call, toResult(say('one ', 'two')), {
    maxKeptBytes: 100,
    maxMs: 60_000,
    log: silentLog,
  })
  live.end({ kind: 'refusal', refusal: { refusal: 'internal', message: '', upstreamStatus: null, failures: null } })
  assert.deepEqual(told, ['text/event-stream', 'one ', 'two'])
  assert.ok(made.outcome === 'finished')
  assert.deepEqual(
    [String(made.result.body), made.result.isPartial, made.result.usage],
    ['one two', false, { tokens: 3 }],
  )
})

test('one that is longer than what is kept is passed on all the same', async () => {
  const { call, live, told } = openCall()
  const made = await relayEvents(call, toResult(say('one ', 'two')), { maxKeptBytes: 5, maxMs: 60_000, log: silentLog })
  live.abandon('internal', '', 1)
  assert.deepEqual(told, ['text/event-stream', 'one ', 'two'])
  assert.ok(made.outcome === 'finished')
  assert.deepEqual([String(made.result.body), made.result.isTooLongToKeep], ['', true])
})

test('one that never ends is cut off, and what came is kept', async () => {
  const { call, live, told } = openCall()
  async function* hang(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('one ')
    await new Promise((_, reject) => live.signal.addEventListener('abort', () => reject(new Error('cut'))))
  }
  const made = await relayEvents(call, toResult(hang()), { maxKeptBytes: 100, maxMs: 1, log: silentLog })
  live.abandon('internal', '', 1)
  assert.deepEqual(told, ['text/event-stream', 'one ', 'cut'])
  assert.ok(made.outcome === 'finished')
  assert.deepEqual([String(made.result.body), made.result.isPartial], ['one cut', true])
})
