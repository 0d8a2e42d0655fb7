import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { EngineEvent } from '../../../engine/graph/run-event.ts'
import { CALL_MOVES, DIRECTORIES, JOB_MOVES } from './event-bus.ts'
import { type LiveEvent, toLiveEvent } from './live-event.ts'
import { MAX_EVENT_TEXT_LENGTH } from './live-event-wire.ts'
import { decodeNotice, encodeNotice, type Notice } from './notice-lines.ts'

const id = fc.oneof(
  fc.uuid(),
  fc.string({ unit: 'binary', minLength: 1, maxLength: 100 }).filter((text) => text.isWellFormed()),
)
const version = fc.nat({ max: Number.MAX_SAFE_INTEGER })
const text = fc.string({ unit: 'grapheme', maxLength: 60 })
const orNull = fc.option(text, { nil: null })
const number = fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0))
const json = fc.jsonValue({ maxDepth: 3 }).map((value) => JSON.parse(JSON.stringify(value)) as unknown)
const dictionary = <Value>(value: fc.Arbitrary<Value>) => fc.dictionary(text, value, { noNullPrototype: true })

const node = { nodeId: text, classType: text, displayNodeId: text, parentNodeId: orNull }
const item = fc.oneof(
  fc.record({ kind: fc.constant('value' as const), value: json }),
  fc.record({
    ...{ kind: fc.constant('file' as const), filename: text, subfolder: text, contentType: orNull },
    folder: fc.constantFrom('output' as const, 'temp' as const, 'input' as const),
  }),
)
const failure = fc.record(
  {
    ...{ code: text, message: text, nodeId: orNull, classType: orNull, traceback: orNull, exceptionType: text },
    ...{ currentInputs: dictionary(fc.array(json)), currentOutputs: fc.array(text), executed: fc.array(text) },
  },
  { requiredKeys: ['code', 'message', 'nodeId', 'classType', 'traceback', 'exceptionType'] },
)
const NODE_KEYS = ['type', 'nodeId', 'classType', 'displayNodeId', 'parentNodeId'] as const
const type = <Type extends string>(name: Type) => fc.constant(name)

const event: fc.Arbitrary<LiveEvent> = fc.oneof(
  fc.record({ type: type('started'), nodesTotal: fc.nat() }),
  fc.record({ type: type('cached'), nodeIds: fc.array(text) }),
  fc.record({ type: type('node_started'), ...node }),
  fc.record(
    { type: type('node_progress'), ...node, value: number, max: number, isOwn: fc.boolean() },
    { requiredKeys: [...NODE_KEYS, 'value', 'max'] },
  ),
  fc.record({ type: type('node_finished'), ...node }),
  fc.record(
    {
      type: type('preview'),
      ...node,
      contentType: text,
      bytes: fc.uint8Array({ maxLength: 100 }),
      isResult: fc.boolean(),
    },
    { requiredKeys: [...NODE_KEYS, 'contentType', 'bytes'] },
  ),
  fc.record({ type: type('node_text'), ...node, text }),
  fc.record({ type: type('node_report'), ...node, report: dictionary(fc.array(item)), cached: fc.boolean() }),
  fc.record({ type: type('node_blocked'), ...node, message: text }),
  fc.record({ type: type('log'), text }),
  fc.record({ type: type('succeeded') }),
  fc.record({ type: type('failed'), failure }),
  fc.record({ type: type('interrupted') }),
)

const notice: fc.Arbitrary<Notice> = fc.oneof(
  fc.record({
    kind: type('changed'),
    notice: fc.record(
      { jobId: id, accountId: id, version, move: fc.constantFrom(...JOB_MOVES) },
      { requiredKeys: ['jobId', 'accountId', 'version'] },
    ),
  }),
  fc.record({ kind: type('live'), notice: fc.record({ jobId: id, accountId: id, event }) }),
  fc.record({ kind: type('work'), pool: fc.option(id, { nil: undefined }) }),
  fc.record({
    kind: type('directory'),
    notice: fc.record({ directory: fc.constantFrom(...DIRECTORIES), version }),
  }),
  fc.record({
    kind: type('call'),
    notice: fc.record({ callId: id, accountId: id, move: fc.constantFrom(...CALL_MOVES) }),
  }),
)

test('every notice comes back from its line as it was, and a line is one line', () => {
  fc.assert(
    fc.property(notice, (original) => {
      const encoded = encodeNotice(original)
      assert.ok(encoded !== null)
      assert.doesNotMatch(encoded.line, /[\r\n\0]/)
      assert.deepEqual(decodeNotice(encoded), structuredClone(original))
    }),
    { numRuns: 500 },
  )
})

test('whatever a medium brings is a notice or nothing, and never an error', () => {
  const bent = fc.tuple(notice, fc.nat({ max: 200 }), fc.string({ maxLength: 4 })).map(([original, at, put]) => {
    const line = encodeNotice(original)?.line ?? ''
    return line.slice(0, at) + put + line.slice(at + put.length)
  })
  fc.assert(
    fc.property(fc.oneof(fc.string(), bent), (line) => {
      const decoded = decodeNotice({ line, bytes: null })
      if (decoded !== null) assert.ok(encodeNotice(decoded) !== null)
    }),
    { numRuns: 1000 },
  )
})

test('what is too large, or has no text form, is not told', () => {
  const live = (event: LiveEvent): Notice => ({ kind: 'live', notice: { jobId: 'j', accountId: 'a', event } })
  assert.equal(encodeNotice(live({ type: 'log', text: 'x'.repeat(MAX_EVENT_TEXT_LENGTH) })), null)
  const ring: { self?: unknown } = {}
  ring.self = ring
  const ref = { nodeId: '1', classType: 'C', displayNodeId: '1', parentNodeId: null }
  const report = { text: [{ kind: 'value' as const, value: ring }] }
  assert.equal(encodeNotice(live({ type: 'node_report', ...ref, report, cached: false })), null)
  assert.equal(encodeNotice({ kind: 'work', pool: 'p'.repeat(300) }), null)
  assert.equal(encodeNotice({ kind: 'directory', notice: { directory: 'keys', version: Number.NaN } }), null)
})

test('a step that is no number is told as nought, and large numbers keep every digit', () => {
  const ref = { nodeId: '1', classType: 'C', displayNodeId: '1', parentNodeId: null }
  const trip = (event: LiveEvent) => {
    const encoded = encodeNotice({ kind: 'live', notice: { jobId: 'j', accountId: 'a', event } })
    const decoded = encoded === null ? null : decodeNotice(encoded)
    return decoded?.kind === 'live' ? decoded.notice.event : null
  }
  const odd = { type: 'node_progress', ...ref, value: Number.NaN, max: Number.POSITIVE_INFINITY } as const
  assert.deepEqual(trip(odd), { ...odd, value: 0, max: 0 })
  const seed = 18_446_744_073_709_551_615n
  const told = {
    type: 'node_report',
    ...ref,
    report: { text: [{ kind: 'value', value: seed }] },
    cached: false,
  } as const
  assert.deepEqual(trip(told), told)
})

test('what only this process can use is not part of a live event', () => {
  const ref = { nodeId: '1', classType: 'C', displayNodeId: '1', parentNodeId: null }
  const file = { kind: 'file', filename: 'a.png', subfolder: '', folder: 'output', contentType: null } as const
  const said: EngineEvent = {
    type: 'node_report',
    ...ref,
    report: { images: [{ ...file, heldBytes: 3, read: async function* () {} }] },
    cached: false,
  }
  assert.deepEqual(toLiveEvent(said), { ...said, report: { images: [file] } })
  const failure = { code: 'refused', message: 'no', nodeId: null, classType: null, traceback: null, exceptionType: 'X' }
  const refusal = { error: { type: 'x', message: '', details: '', extraInfo: {} }, nodeErrors: {} } as never
  assert.deepEqual(toLiveEvent({ type: 'failed', failure: { ...failure, refusal } }), { type: 'failed', failure })
})
