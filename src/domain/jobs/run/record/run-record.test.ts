import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineEvent, NodeRef } from '../../../../../engine/graph/run-event.ts'
import { createNodeSpans, createRunRecorder, toSpanFields } from './run-record.ts'

const ref = (nodeId: string): NodeRef => ({
  nodeId,
  classType: `Class${nodeId}`,
  displayNodeId: nodeId,
  parentNodeId: null,
})

function record(events: readonly EngineEvent[]) {
  const recorder = createRunRecorder()
  for (const [index, event] of events.entries()) recorder.take(event, 1000 + index)
  return recorder.finish(2000)
}

test('a run that never began leaves no record', () => {
  assert.equal(record([]), null)
  assert.equal(record([{ type: 'interrupted' }]), null)
})

test('what nodes showed is kept in order, with files by their names', () => {
  const read = async function* () {}
  const file = { kind: 'file', filename: 'a.png', subfolder: 's', folder: 'temp', contentType: null, read } as const
  const made = record([
    { type: 'started', nodesTotal: 2 },
    { type: 'cached', nodeIds: ['9'] },
    { type: 'node_report', ...ref('9'), report: { text: [{ kind: 'value', value: 'old' }] }, cached: true },
    { type: 'node_finished', ...ref('9') },
    { type: 'node_started', ...ref('1') },
    {
      type: 'node_report',
      ...ref('1'),
      report: { images: [file], animated: [{ kind: 'value', value: true }] },
      cached: false,
    },
    { type: 'node_finished', ...ref('1') },
    { type: 'succeeded' },
  ])
  assert.deepEqual(made?.cached, { nodeIds: ['9'], atMs: 1001 })
  assert.deepEqual(made?.executed, ['1'], 'a cached node was not executed')
  assert.deepEqual(
    made?.nodes.map(({ nodeId, output }) => [nodeId, output]),
    [
      ['9', { text: ['old'] }],
      ['1', { images: [{ filename: 'a.png', subfolder: 's', type: 'temp' }], animated: [true] }],
    ],
  )
  assert.deepEqual([made?.startedAtMs, made?.endedAtMs, made?.stoppedAt], [1000, 2000, null])
})

test('the node at work is remembered when a run stops before its end, and a blocked branch is no stop', () => {
  const failure = { code: 'node_execution_error', message: 'no', nodeId: '2', classType: 'Class2', traceback: null }
  const start: EngineEvent[] = [
    { type: 'started', nodesTotal: 2 },
    { type: 'node_started', ...ref('2') },
  ]
  const failed = record([...start, { type: 'failed', failure: { ...failure, exceptionType: 'ValueError' } }])
  assert.deepEqual([failed?.stoppedAt?.classType, failed?.failure?.exceptionType], ['Class2', 'ValueError'])
  const blocked = record([...start, { type: 'failed', failure: { ...failure, exceptionType: 'ExecutionBlocked' } }])
  assert.equal(blocked?.failure, null)
  assert.equal(record([...start, { type: 'interrupted' }])?.stoppedAt?.nodeId, '2')
})

test('however much a node shows, the record stays small', () => {
  const value = 'x'.repeat(1_000_000)
  const report = { text: [{ kind: 'value', value } as const] }
  const events: EngineEvent[] = [{ type: 'started', nodesTotal: 1 }]
  for (let node = 0; node < 100; node++)
    events.push({ type: 'node_report', ...ref(String(node)), report, cached: false })
  const made = record(events)
  assert.ok(JSON.stringify(made).length < 3_000_000)
  assert.equal(String(made?.nodes[0].output['text'][0]).length, 65_536)
  const cycle: Record<string, unknown> = {}
  cycle['self'] = cycle
  const odd = record([
    ...events.slice(0, 1),
    { type: 'node_report', ...ref('1'), report: { odd: [{ kind: 'value', value: cycle }] }, cached: false },
  ])
  assert.deepEqual(odd?.nodes[0].output, { odd: [null] })
})

const node = (nodeId: string, displayNodeId = nodeId) => ({
  ...{ nodeId, displayNodeId, classType: 'Blur', parentNodeId: null },
})

function fold(events: readonly (readonly [type: 'node_started' | 'node_finished', ...ids: string[]])[]) {
  const spans = createNodeSpans()
  for (const [at, [type, id = '', shown]] of events.entries()) spans.take({ type, ...node(id, shown) }, at)
  return spans.list().map(toSpanFields)
}

test('a node whose result was found while the graph ran is cached, and one that was never reached is not told of', () => {
  const events = [
    ['node_started', '1'],
    ['node_finished', '1'],
    // Made meanwhile by another job: it ends without a beginning.
    ['node_finished', '2'],
  ] as const
  assert.deepEqual(fold(events), [
    ['1', 0, 1, null, null],
    ['2', null, null, null, null],
  ])
})

test('a node that begins again for inputs that it asked for ends once', () => {
  const events = [
    ['node_started', '1'],
    ['node_started', '1'],
    ['node_finished', '1'],
  ] as const
  assert.deepEqual(fold(events), [['1', 0, 2, null, null]])
})

test('a node that stands for others runs until the last of them has ended, and a cached one among them ends nothing', () => {
  const events = [
    ['node_started', '1'],
    ['node_started', '1.a', '1'],
    ['node_finished', '1.b', '1'],
    ['node_finished', '1.a', '1'],
    ['node_finished', '1'],
  ] as const
  assert.deepEqual(fold(events), [['1', 0, 4, null, null]])
})
