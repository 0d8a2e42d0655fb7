import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import type { Graph, GraphNode } from '../../../../engine/graph/graph.ts'
import type { EngineEvent, ReportedFile } from '../../../../engine/graph/run-event.ts'
import type { Progress } from '../job.ts'
import { applyEngineEvent, type RunFold, startFold, toProgress } from './apply-engine-event.ts'
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

const GRAPH: Graph = new Map<string, GraphNode>([
  ['1', { classType: 'CheckpointLoaderSimple', inputs: {}, title: null }],
  ['2', { classType: 'KSampler', inputs: { steps: 50 }, title: null }],
  ['3', { classType: 'SaveImage', inputs: {}, title: null }],
])

function ref(nodeId: string, classType = GRAPH.get(nodeId)?.classType ?? 'Other') {
  return { nodeId, classType, displayNodeId: nodeId, parentNodeId: null }
}

function progressOf(events: readonly EngineEvent[], earlierProgress: Progress | null = null): Progress {
  const start = startFold({ graph: GRAPH, earlierProgress })
  return toProgress(events.reduce(applyEngineEvent, start).progress)
}

const STARTED: EngineEvent = { type: 'started', nodesTotal: 3 }
const FIRST_DONE: readonly EngineEvent[] = [
  STARTED,
  { type: 'node_started', ...ref('1') },
  { type: 'node_finished', ...ref('1') },
]

test('a node weighs one and a sampler its steps', () => {
  const progress = progressOf([
    ...FIRST_DONE,
    { type: 'node_started', ...ref('2') },
    { type: 'node_progress', ...ref('2'), value: 21, max: 50 },
  ])
  assert.deepEqual(progress, {
    value: 22 / 52,
    nodesDone: 1,
    nodesTotal: 3,
    currentNode: '2',
    currentNodeClass: 'KSampler',
    step: 21,
    steps: 50,
    message: 'KSampler 21/50',
  })
})

test('a sampler whose steps are not in the graph weighs what it reports', () => {
  const sampler = ref('2', 'SamplerCustomAdvanced')
  const graph: Graph = new Map([...GRAPH, ['2', { classType: 'SamplerCustomAdvanced', inputs: {}, title: null }]])
  const events: EngineEvent[] = [...FIRST_DONE, { type: 'node_progress', ...sampler, value: 5, max: 10 }]
  const state = events.reduce(applyEngineEvent, startFold({ graph, earlierProgress: null }))
  assert.equal(toProgress(state.progress).value, 6 / 12)
})

test('a node that reports endless steps has said nothing', () => {
  const endless: EngineEvent = { ...ref('3'), type: 'node_progress', value: 1, max: Number.POSITIVE_INFINITY }
  assert.equal(progressOf([STARTED, { type: 'node_started', ...ref('3') }, endless]).steps, null)
})

test('other nodes that report steps still weigh one', () => {
  const progress = progressOf([STARTED, { type: 'node_progress', ...ref('1'), value: 512, max: 1024 }])
  assert.equal(progress.value, 0.5 / 52)
  assert.equal(progress.message, 'CheckpointLoaderSimple 512/1024')
})

test('cached nodes are not counted', () => {
  const progress = progressOf([
    STARTED,
    { type: 'cached', nodeIds: ['1', '2'] },
    { type: 'node_finished', ...ref('1') },
  ])
  assert.deepEqual([progress.nodesDone, progress.nodesTotal, progress.value], [0, 1, 0])
})

test('nodes made by expansion raise the total and show the node that stands for them', () => {
  const inner = (nodeId: string) => ({ nodeId, classType: 'Inner', displayNodeId: '1', parentNodeId: '1' })
  const events: EngineEvent[] = ['1.a', '1.b', '1.c', '1.d'].flatMap((nodeId) => [
    { type: 'node_started', ...inner(nodeId) },
    { type: 'node_finished', ...inner(nodeId) },
  ])
  const progress = progressOf([STARTED, ...events, { type: 'node_started', ...inner('1.e') }])
  assert.deepEqual([progress.nodesDone, progress.nodesTotal, progress.currentNode], [4, 5, '1'])
})

test('success is 1 and leaves nothing to be done', () => {
  const progress = progressOf([...FIRST_DONE, { type: 'succeeded' }])
  assert.deepEqual([progress.value, progress.nodesDone, progress.nodesTotal, progress.currentNode], [1, 3, 3, null])
})

test('impossible numbers change nothing', () => {
  for (const [value, max] of [
    [1, 0],
    [Number.NaN, 5],
    [-1, 5],
    [1, Number.NaN],
  ]) {
    assert.equal(progressOf([STARTED, { type: 'node_progress', ...ref('1'), value, max }]).value, 0)
  }
})

const nodeIds = fc.constantFrom('1', '2', '3', '4', '5')
const events: fc.Arbitrary<EngineEvent> = fc.oneof(
  fc.record({ type: fc.constant('started' as const), nodesTotal: fc.nat(6) }),
  fc.record({ type: fc.constant('cached' as const), nodeIds: fc.array(nodeIds, { maxLength: 3 }) }),
  nodeIds.map((id) => ({ type: 'node_started' as const, ...ref(id) })),
  nodeIds.map((id) => ({ type: 'node_finished' as const, ...ref(id) })),
  fc
    .tuple(nodeIds, fc.double(), fc.double())
    .map(([id, value, max]) => ({ type: 'node_progress' as const, ...ref(id), value, max })),
  fc.constant({ type: 'succeeded' as const }),
)

test('the value stays within 0 and 1 and never falls, also across attempts, whatever the engine says', () => {
  fc.assert(
    fc.property(fc.array(fc.array(events, { maxLength: 30 }), { maxLength: 3 }), (attempts) => {
      let last: Progress | null = null
      for (const attempt of attempts) {
        let state = startFold({ graph: GRAPH, earlierProgress: last })
        for (const event of attempt) {
          state = applyEngineEvent(state, event)
          const now: Progress = toProgress(state.progress)
          assert.ok(now.value >= (last?.value ?? 0) && now.value <= 1)
          assert.ok(now.nodesDone >= 0 && now.nodesDone <= now.nodesTotal)
          assert.ok(now.step === null || (Number.isInteger(now.step) && Number.isInteger(now.steps)))
          last = now
        }
      }
    }),
  )
})
