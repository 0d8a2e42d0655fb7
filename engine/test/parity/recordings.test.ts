/** Whole runs, compared with what a real ComfyUI sent: the same events in the same order, the same cached sets. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import type { EngineEvent } from '../../graph/run-event.ts'
import {
  cachedIds,
  FIXTURES,
  filesOf,
  type GraphJson,
  openTestEngine,
  outline,
  readFixture,
  type TestEngine,
  texts,
} from '../support/harness.ts'

interface Frame {
  readonly type: string
  readonly data: {
    readonly node?: string | null
    readonly nodes?: unknown
    readonly output?: Record<string, { filename: string; subfolder: string; type: string }[]>
  }
}

interface Recording {
  readonly post: { readonly request: { readonly json: { prompt: GraphJson; extra_data?: Record<string, JsonValue> } } }
  readonly frames: readonly Frame[]
}

const readRecording = (name: string) => readFixture(`recordings/${name}.json`) as unknown as Recording

/** Which nodes were executing and reporting, in order: what both sides tell in their own words. */
function recordedSteps({ frames }: Recording): string[] {
  return frames.flatMap(({ type, data }) => {
    if (type === 'executing' && typeof data.node === 'string') return [`${data.node}+`]
    return type === 'executed' ? [`${data.node}!`] : []
  })
}

function steps(events: readonly EngineEvent[]): string[] {
  return events.flatMap((event) => {
    if (event.type === 'node_started') return [`${event.nodeId}+`]
    return event.type === 'node_report' ? [`${event.nodeId}!`] : []
  })
}

function recordedCached({ frames }: Recording): string[] {
  const cached = frames.find(({ type }) => type === 'execution_cached')
  return ((cached?.data.nodes ?? []) as string[]).toSorted()
}

const files = { 'test.png': `${FIXTURES}recordings/test.png` }
let engine: TestEngine
before(async () => {
  engine = await openTestEngine()
})
after(() => engine[Symbol.asyncDispose]())

/** An owner stands for one sitting at the recorded server: it starts with an empty cache. */
async function replay(owner: string, name: string, rename: (graph: GraphJson) => GraphJson = (graph) => graph) {
  const recording = readRecording(name)
  const { prompt, extra_data: extraData } = recording.post.request.json
  return {
    recording,
    events: await engine.run(rename(prompt), { files, extraPngInfo: extraData?.extra_pnginfo, owner }),
  }
}

test('three runs in a row: first everything runs, then nothing, then what depends on the changed constant', async () => {
  const first = await replay('three runs', 'run1-success')
  assert.deepEqual(steps(first.events), recordedSteps(first.recording))
  assert.deepEqual(cachedIds(first.events), recordedCached(first.recording))
  const [saved] = filesOf(first.events, '4')
  assert.deepEqual([saved.filename, saved.subfolder, saved.folder], ['run_32x24_00001_.png', 'samples', 'output'])
  const [preview] = filesOf(first.events, '5')
  assert.match(preview.filename, /^ComfyUI_temp_[a-z]{5}_00001_\.png$/)
  assert.equal(preview.folder, 'temp')

  const second = await replay('three runs', 'run2-all-cached')
  assert.deepEqual(cachedIds(second.events), recordedCached(second.recording))
  assert.deepEqual(new Set(steps(second.events)), new Set(recordedSteps(second.recording)))
  assert.equal(filesOf(second.events, '4')[0].filename, 'run_32x24_00001_.png')
  assert.equal(outline(second.events), '4!cached 4. 5!cached 5. succeeded')

  const third = await replay('three runs', 'run3-partly-cached')
  assert.deepEqual(steps(third.events), recordedSteps(third.recording))
  assert.deepEqual(cachedIds(third.events), recordedCached(third.recording))
  assert.equal(filesOf(third.events, '4')[0].filename, 'run_40x24_00001_.png')
  // The preview keeps its letters and counts on.
  assert.equal(filesOf(third.events, '5')[0].filename, preview.filename.replace('00001', '00002'))
})

test('text output is reported as text', async () => {
  const { recording, events } = await replay('preview-any', 'preview-any')
  assert.deepEqual(steps(events), recordedSteps(recording))
  assert.deepEqual(texts(events, '5'), ['a'])
})

test('only the branch that a lazy switch asks for runs, and the switch is staged twice', async () => {
  const { recording, events } = await replay('lazy-switch', 'lazy-switch', (graph) => ({
    ...graph,
    4: { ...graph[4], class_type: 'TestSwitch' },
  }))
  assert.deepEqual(steps(events), recordedSteps(recording))
})

test('lazy inputs that depend on a computed mask are asked for once it is known', async () => {
  const { recording, events } = await replay('lazy', 'lazy', (graph) => ({
    ...graph,
    3: { ...graph[3], class_type: 'TestMask' },
  }))
  assert.deepEqual(steps(events), recordedSteps(recording))
})

test('a node that expands: its children run under their own ids and it finishes after them', async () => {
  const { recording, events } = await replay('expansion', 'expansion')
  // The two images that the mix asks for come in either order.
  const sorted = (list: string[]) => [...list].sort()
  assert.deepEqual(sorted(steps(events)), sorted(recordedSteps(recording)))
  assert.match(outline(events), /4\.0\.0\.4\. 4\. 5\+/)
  const child = events.find((event) => event.type === 'node_started' && event.nodeId === '4.0.0.1')
  assert.deepEqual(child, {
    type: 'node_started',
    nodeId: '4.0.0.1',
    classType: 'TestMask',
    displayNodeId: '4',
    parentNodeId: '4',
  })
})

test('a node raises: what was finished before stays reported, nothing after it runs', async () => {
  const { recording, events } = await replay('errors', 'runtime-error')
  assert.deepEqual(steps(events), recordedSteps(recording))
  const end = events.at(-1)
  assert.ok(end?.type === 'failed')
  assert.equal(end.failure.code, 'node_execution_error')
  assert.equal(end.failure.exceptionType, 'RuntimeError')
  assert.equal(end.failure.message, 'Intentional sync execution error for testing')
  assert.equal(end.failure.nodeId, '2')
  assert.equal(end.failure.classType, 'TestSyncError')
})

test('a blocker with a message tells it once and the run succeeds; a silent one tells nothing', async () => {
  const verbose = await replay('errors', 'execution-blocker-verbose')
  assert.deepEqual(cachedIds(verbose.events), recordedCached(verbose.recording))
  assert.equal(outline(verbose.events), '4!cached 4. 2+ 2. 3+ 3? 3. succeeded')
  const blocked = verbose.events.find((event) => event.type === 'node_blocked')
  assert.equal(blocked?.type === 'node_blocked' && blocked.message, 'Blocked Execution')

  const silent = await replay('errors', 'execution-blocker-silent')
  assert.equal(outline(silent.events), '4!cached 4. 2+ 2. 3+ 3. succeeded')
})

test('progress, previews, text and log of a node arrive between its start and its end', async () => {
  const events = await engine.run({
    1: { class_type: 'DemoSteps', inputs: { steps: 3, preview: true } },
    2: { class_type: 'PreviewImage', inputs: { images: ['1', 0] } },
  })
  const first = events.findIndex((event) => event.type === 'node_started')
  const last = events.findIndex((event) => event.type === 'node_finished')
  const between = events.slice(first + 1, last)
  const progress = between.findLast((event) => event.type === 'node_progress')
  assert.deepEqual(progress, {
    ...{ type: 'node_progress', nodeId: '1', classType: 'DemoSteps', displayNodeId: '1', parentNodeId: null },
    ...{ value: 3, max: 3 },
  })
  const preview = between.findLast((event) => event.type === 'preview')
  assert.deepEqual(preview?.type === 'preview' && [...preview.bytes], [3])
  assert.ok(between.some((event) => event.type === 'node_text' && event.text === 'hello text'))
  const log = events.flatMap((event) => (event.type === 'log' ? [event.text] : [])).join('')
  assert.match(log, /^step 1\nstep 2\nstep 3\nPrompt executed in \d+\.\d\d seconds\n$/)
})
