/** List mapping, caching, expansion and failures of whole graphs, through the engine's own door. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import {
  cachedIds,
  dumped,
  type GraphJson,
  lastOf,
  openTestEngine,
  outline,
  type TestEngine,
  texts,
} from '../support/harness.ts'

let engine: TestEngine
before(async () => {
  engine = await openTestEngine()
})
after(() => engine[Symbol.asyncDispose]())

const list = (prefix: string, count: number) => ({ class_type: 'TestList', inputs: { prefix, count } })
const join = (a: unknown, b: unknown) => ({
  class_type: 'StringConcatenate',
  inputs: { string_a: a, string_b: b, delimiter: '' },
})
const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })
const show = (source: unknown) => ({ class_type: 'TestShow', inputs: { text: source } })

test('a node runs once per element of its longest list; shorter lists repeat their last element', async () => {
  const events = await engine.run({ a: list('a', 3), b: list('b', 2), c: join(['a', 0], ['b', 0]), d: dump('c') })
  assert.deepEqual(
    dumped(events, 'd').map((item) => (item as { value: string }).value),
    ['a0b0', 'a1b1', 'a2b1'],
  )
})

test('reports of several calls become one', async () => {
  const events = await engine.run({ a: list('x', 3), s: show(['a', 0]) })
  assert.deepEqual(texts(events, 's'), ['x0', 'x1', 'x2'])
})

test('an empty list beside others is an error that names the input', async () => {
  const events = await engine.run({ a: list('a', 0), s: show(['a', 0]) })
  const { failure } = lastOf(events, 'failed')
  assert.equal(failure.exceptionType, 'IndexError')
  assert.match(failure.message, /text: the list of values is empty/)
})

test('the same graph under other ids is cached; an undeclared input is not the same graph', async () => {
  const graph = (id: string, extra = {}): GraphJson => ({
    [id]: { class_type: 'PrimitiveString', inputs: { value: 'cache me', ...extra } },
    [`${id}s`]: show([id, 0]),
  })
  await engine.run(graph('p'))
  assert.deepEqual(cachedIds(await engine.run(graph('q'))), ['q', 'qs'])
  assert.deepEqual(cachedIds(await engine.run(graph('p', { unknown: 1 }))), [])
})

test('results of one owner are not served to another', async () => {
  const graph: GraphJson = { 1: { class_type: 'PrimitiveString', inputs: { value: 'mine' } }, 2: show(['1', 0]) }
  await engine.run(graph, { owner: 'one' })
  assert.deepEqual(cachedIds(await engine.run(graph, { owner: 'two' })), [])
})

test('an equal node of the same run is not computed twice', async () => {
  const same = { class_type: 'PrimitiveString', inputs: { value: 'twin' } }
  const events = await engine.run({ 1: same, 2: same, 3: join(['1', 0], ['2', 0]), 4: show(['3', 0]) })
  assert.deepEqual(texts(events, '4'), ['twintwin'])
  assert.equal(events.filter((event) => event.type === 'node_started').length, 3)
})

test('after a failure the finished nodes are still cached', async () => {
  const graph: GraphJson = {
    1: { class_type: 'PrimitiveString', inputs: { value: 'before the failure' } },
    2: { class_type: 'TestSyncError', inputs: { value: ['1', 0] } },
    3: { class_type: 'PreviewAny', inputs: { source: ['2', 0] } },
  }
  assert.equal(outline(await engine.run(graph)), '1+ 1. 2+ failed')
  assert.deepEqual(cachedIds(await engine.run(graph)), ['1'])
})

test('an integer beyond 2^53 passes through the graph unchanged, and floats stay floats', async () => {
  const events = await engine.run({
    1: { class_type: 'PrimitiveInt', inputs: { value: 18446744073709551615n } },
    2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
    3: { class_type: 'PrimitiveFloat', inputs: { value: 4 } },
    4: { class_type: 'PreviewAny', inputs: { source: ['3', 0] } },
    5: { class_type: 'PreviewAny', inputs: { source: { __proto__: null, name: 'é', list: [1, null, true] } } },
  })
  assert.deepEqual(texts(events, '2'), ['18446744073709551615'])
  assert.deepEqual(texts(events, '4'), ['4.0'])
  assert.deepEqual(texts(events, '5'), [
    '{\n    "name": "é",\n    "list": [\n        1,\n        null,\n        true\n    ]\n}',
  ])
})

test('a verbose blocker that feeds two nodes speaks once, and its list neighbours run', async () => {
  const events = await engine.run({
    1: { class_type: 'TestExecutionBlocker', inputs: { input: 'x', block: true, verbose: true } },
    2: show(['1', 0]),
    3: show(['1', 0]),
  })
  assert.equal(events.filter((event) => event.type === 'node_blocked').length, 1)
  assert.equal(events.at(-1)?.type, 'succeeded')
})

test('a failure inside an expanded graph is the failure of the node that expanded', async () => {
  const events = await engine.run({
    7: { class_type: 'TestFailingExpansion', inputs: {} },
    8: { class_type: 'PreviewAny', inputs: { source: ['7', 0] } },
  })
  const { failure } = lastOf(events, 'failed')
  assert.equal(failure.nodeId, '7')
  assert.equal(failure.classType, 'TestFailingExpansion')
})

test('a constant where an image is wanted fails at run time, like in ComfyUI', async () => {
  const events = await engine.run({ 4: { class_type: 'SaveImage', inputs: { images: 'nope', filename_prefix: 'x' } } })
  const { failure } = lastOf(events, 'failed')
  assert.equal(failure.exceptionType, 'AttributeError')
  assert.equal(failure.message, "'str' object has no attribute 'shape'")
  assert.equal(failure.nodeId, '4')
})

test('a graph of a class that the engine does not have fails instead of hanging', async () => {
  const events = await engine.run({ 1: { class_type: 'NoSuchNode', inputs: {} } })
  assert.match(lastOf(events, 'failed').failure.message, /no node class NoSuchNode/)
})

test('nodes that wait for each other are a failure that names them', async () => {
  const events = await engine.run({
    1: { class_type: 'TestPlusOne', inputs: { value: ['2', 0] } },
    2: { class_type: 'TestPlusOne', inputs: { value: ['1', 0] } },
    3: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
  })
  const { failure } = lastOf(events, 'failed')
  assert.equal(failure.exceptionType, 'graph.DependencyCycleError')
  assert.match(failure.message, /1 \(TestPlusOne\)/)
})

test('a chain of a thousand nodes runs in order', async () => {
  const graph: GraphJson = { n0: { class_type: 'TestPlusOne', inputs: { value: 0 } } }
  for (let index = 1; index < 1000; index++) {
    graph[`n${index}`] = { class_type: 'TestPlusOne', inputs: { value: [`n${index - 1}`, 0] } }
  }
  graph.out = { class_type: 'PreviewAny', inputs: { source: ['n999', 0] } }
  const events = await engine.run(graph)
  assert.deepEqual(texts(events, 'out'), ['1000'])
  assert.equal(lastOf(events, 'started').nodesTotal, 1001)
})
