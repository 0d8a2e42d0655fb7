import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readKeptTrace, readTraceContext, toTraceHeaders, writeTraceContext } from './trace-context.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const SPAN = '00f067aa0ba902b7'
const HEADER = `00-${TRACE}-${SPAN}-01`

test('a context is read from its headers and written as it came', () => {
  const context = readTraceContext(HEADER, 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE')
  assert.deepEqual(context, {
    ...{ traceId: TRACE, spanId: SPAN, isSampled: true },
    state: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
  })
  assert.ok(context !== null)
  assert.deepEqual(toTraceHeaders(context), {
    traceparent: HEADER,
    tracestate: 'rojo=00f067aa0ba902b7,congo=t61rcWkgMzE',
  })
  assert.deepEqual(toTraceHeaders({ ...context, isSampled: false, state: '' }), {
    traceparent: `00-${TRACE}-${SPAN}-00`,
  })
})

test('a later version is read as far as it is known', () => {
  assert.equal(readTraceContext(`01-${TRACE}-${SPAN}-01-more`)?.traceId, TRACE)
  assert.equal(readTraceContext(`00-${TRACE}-${SPAN}-02`)?.isSampled, false)
  assert.equal(readTraceContext(`00-${TRACE}-${SPAN}-03`)?.isSampled, true)
})

test('whatever does not follow the recommendation counts as absent', () => {
  const wrong = [
    undefined,
    '',
    ['a', 'b'],
    HEADER.toUpperCase(),
    `ff-${TRACE}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `${HEADER}-more`,
    `${HEADER}x`,
    `01-${TRACE}-${SPAN}-01-${'x'.repeat(500)}`,
  ]
  for (const header of wrong) assert.equal(readTraceContext(header), null, String(header))
  assert.equal(readTraceContext(HEADER, 'x'.repeat(513))?.state, '')
  assert.equal(readTraceContext(HEADER, 'a=\u0000')?.state, '')
  assert.equal(readTraceContext(HEADER, ['a=1', 'b=2'])?.state, 'a=1,b=2')
})

test('what is kept of a trace is read as it was', () => {
  for (const state of ['', 'vendor=1, other=2']) {
    const context = { traceId: TRACE, spanId: SPAN, isSampled: true, state }
    assert.deepEqual(readKeptTrace(writeTraceContext(context)), context)
  }
  for (const text of [null, '', 'word', `${HEADER}x a=1`]) assert.equal(readKeptTrace(text), null)
})
