import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineEvent, ReportedFile } from '../../../../engine/graph/run-event.ts'
import { applyEngineEvent, type RunFold, startFold } from './apply-engine-event.ts'
import { readLog } from './record/log-lines.ts'

const NODE = { nodeId: '4.0', classType: 'Save', displayNodeId: '4', parentNodeId: null }
const FAILURE = { code: 'node_execution_error', message: 'bad', nodeId: '4', classType: 'Save', traceback: null }

function file(filename: string): ReportedFile {
  return { kind: 'file', filename, subfolder: '', folder: 'output', contentType: null, async *read() {} }
}

function fold(...events: EngineEvent[]): RunFold {
  return events.reduce(applyEngineEvent, startFold({ graph: new Map(), earlierProgress: null }))
}

test('a report brings its items once, in order, under the node of the submitted graph', () => {
  const report = { images: [file('a.png'), file('b.png')], text: [{ kind: 'value', value: 1 } as const] }
  const event: EngineEvent = { type: 'node_report', ...NODE, report, cached: false }
  const first = fold(event)
  assert.deepEqual(
    first.fresh.map(({ nodeId, key, index }) => [nodeId, key, index]),
    [
      ['4', 'images', 0],
      ['4', 'images', 1],
      ['4', 'text', 0],
    ],
  )
  const again = applyEngineEvent(first, event)
  assert.deepEqual([again.fresh.length, again.reportedCount], [0, 3])
  const other = applyEngineEvent(again, { ...event, report: { text: [{ kind: 'value', value: 2 }] } })
  assert.deepEqual([other.fresh.length, other.reportedCount], [1, 4])
})

test('files of one report may bear the same name', () => {
  const report = { images: [file('b0_00001_.png'), file('b0_00001_.png')] }
  assert.equal(fold({ type: 'node_report', ...NODE, report, cached: false }).fresh.length, 2)
})

test('outputs count as reused only when cached nodes were named', () => {
  assert.equal(fold({ type: 'cached', nodeIds: [] }).outputsReused, false)
  assert.equal(fold({ type: 'cached', nodeIds: ['1'] }).outputsReused, true)
  assert.equal(fold({ type: 'node_report', ...NODE, report: {}, cached: true }).outputsReused, true)
})

test('a blocked branch is no failure, in either form', () => {
  const state = fold(
    { type: 'node_blocked', ...NODE, message: 'switched off' },
    { type: 'failed', failure: { ...FAILURE, exceptionType: 'ExecutionBlocked' } },
  )
  assert.equal(state.outcome, null)
  assert.match(readLog(state.log).text, /Execution Blocked: switched off/)
  assert.deepEqual(applyEngineEvent(state, { type: 'succeeded' }).outcome, { kind: 'succeeded' })
})

test('the first outcome stands and nothing after it counts', () => {
  const state = fold(
    { type: 'failed', failure: { ...FAILURE, exceptionType: 'ValueError' } },
    { type: 'succeeded' },
    { type: 'log', text: 'late' },
    { type: 'node_report', ...NODE, report: { images: [file('a.png')] }, cached: false },
  )
  assert.equal(state.outcome?.kind, 'failed')
  assert.equal(readLog(state.log).text, '')
  assert.equal(state.reportedCount, 0)
})

test('huge error texts are cut: the message keeps its head, the traceback its tail', () => {
  const failure = {
    ...FAILURE,
    exceptionType: 'ValueError',
    message: `head${'é'.repeat(100_000)}`,
    traceback: `${'x'.repeat(1_000_000)}tail`,
  }
  const { outcome } = fold({ type: 'failed', failure })
  assert.ok(outcome?.kind === 'failed')
  assert.ok(Buffer.byteLength(outcome.error.message) <= 16_384 && outcome.error.message.startsWith('headé'))
  assert.ok(!outcome.error.message.includes('\ufffd'))
  assert.ok((outcome.error.traceback?.length ?? 0) <= 65_536 && outcome.error.traceback?.endsWith('tail'))
})
