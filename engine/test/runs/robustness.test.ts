/** Cancelling, memory limits, and threads that die. */
import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import { CheckedGraph } from '../../engine.ts'
import { readGraph } from '../../graph/graph-json.ts'
import {
  cachedIds,
  type GraphJson,
  lastOf,
  openTestEngine,
  outline,
  texts,
  watchProcesses,
} from '../support/harness.ts'

const empty = (side: number, color = 0) => ({
  class_type: 'EmptyImage',
  inputs: { width: side, height: side, batch_size: 1, color },
})
const scale = (method: string, side: number, image: unknown = ['1', 0]) => ({
  class_type: 'ImageScale',
  inputs: { image, upscale_method: method, width: side, height: side, crop: 'disabled' },
})
const show = (id: string) => ({ class_type: 'PreviewAny', inputs: { source: [id, 0] } })
const HELLO: GraphJson = { 1: { class_type: 'PrimitiveString', inputs: { value: 'hello' } }, 2: show('1') }

test('a cancel takes effect inside a long resize, and the engine goes on', async () => {
  await using engine = await openTestEngine({ memoryLimitBytes: 2 ** 31 })
  for (const method of ['bicubic', 'lanczos']) {
    const abort = new AbortController()
    const graph: GraphJson = { 1: empty(1024), 2: scale(method, 8000), 3: show('2') }
    const events = await engine.run(graph, {
      signal: abort.signal,
      onEvent(event) {
        if (event.type === 'node_started' && event.nodeId === '2') abort.abort()
      },
    })
    assert.equal(outline(events).split(' ').at(-1), 'interrupted')
    assert.ok(!outline(events).includes('2.'))
  }
  assert.deepEqual(texts(await engine.run(HELLO), '2'), ['hello'])
})

test('a run that is cancelled before it starts is interrupted at once', async () => {
  await using engine = await openTestEngine()
  const events = await engine.run(HELLO, { signal: AbortSignal.abort() })
  assert.deepEqual([events[0].type, events.at(-1)?.type], ['started', 'interrupted'])
})

test('a node that works without end is stopped by a cancel', async () => {
  await using engine = await openTestEngine()
  const abort = new AbortController()
  const events = await engine.run(
    { 1: { class_type: 'TestEndless', inputs: {} }, 2: show('1') },
    {
      signal: abort.signal,
      onEvent(event) {
        if (event.type === 'log') abort.abort()
      },
    },
  )
  assert.equal(events.at(-1)?.type, 'interrupted')
})

test('a reader that leaves early ends the run', async () => {
  await using engine = await openTestEngine()
  const graph = readGraph({
    1: { class_type: 'TestEndless', inputs: {} },
    2: { class_type: 'PreviewAny', inputs: { source: ['1', 0] } },
  })
  for await (const event of engine.engine.run(new CheckedGraph(graph))) {
    if (event.type === 'log') break
  }
  // The only compute thread is free again: this run needs it.
  const events = await engine.run({ 1: empty(256, 77), 2: show('1') })
  assert.equal(events.at(-1)?.type, 'succeeded')
})

test('a graph beyond the memory limit fails with a clear error, and the memory is free afterwards', async () => {
  await using engine = await openTestEngine({ memoryLimitBytes: 64 * 1_048_576 })
  const events = await engine.run({ 1: empty(1024), 2: scale('bilinear', 4096), 3: show('2') })
  const { failure } = lastOf(events, 'failed')
  assert.equal(failure.exceptionType, 'MemoryError')
  assert.match(
    failure.message,
    /^memory limit of 64 MiB reached: this node asked for 192 MiB while \d+ MiB were in use/,
  )
  for (let index = 0; index < 20; index++) {
    // Each fits only because what earlier runs left in the cache makes room.
    const again = await engine.run({ 1: empty(1024, index), 2: scale('bilinear', 1500), 3: show('2') })
    assert.equal(again.at(-1)?.type, 'succeeded', JSON.stringify(again.at(-1)))
  }
})

test('a long chain of large images needs room for two, not for all', async () => {
  await using engine = await openTestEngine({ memoryLimitBytes: 64 * 1_048_576 })
  const graph: GraphJson = { n0: empty(1200, 3) }
  for (let index = 1; index <= 12; index++) {
    graph[`n${index}`] = { class_type: 'ImageInvert', inputs: { image: [`n${index - 1}`, 0] } }
  }
  graph.out = show('n12')
  assert.equal((await engine.run(graph)).at(-1)?.type, 'succeeded')
})

test('a node that takes its compute thread down fails its own job only', async () => {
  await using engine = await openTestEngine()
  const events = await engine.run({ 1: { class_type: 'TestExit', inputs: { where: 'compute' } }, 2: show('1') })
  const { failure } = lastOf(events, 'failed')
  assert.match(failure.message, /TestExit took its compute thread down; the thread was replaced/)
  assert.equal(failure.nodeId, '1')
  const after = await engine.run({ 1: empty(256), 2: show('1') })
  assert.equal(after.at(-1)?.type, 'succeeded')
})

test('the run that takes the engine thread down fails, its neighbours are lost without blame, the next run succeeds', async () => {
  await using engine = await openTestEngine()
  const started = Promise.withResolvers<void>()
  const neighbour = engine.run(
    { 1: { class_type: 'TestEndless', inputs: {} }, 2: show('1') },
    {
      onEvent(event) {
        if (event.type === 'log') started.resolve()
      },
    },
  )
  const lost = assert.rejects(neighbour, {
    name: 'EngineThreadLostError',
    isBlameless: true,
    message: /engine thread ended/,
  })
  await started.promise
  const events = await engine.run({ 1: { class_type: 'TestExit', inputs: { where: 'inline' } }, 2: show('1') })
  assert.match(lastOf(events, 'failed').failure.message, /took the engine thread down, which was replaced/)
  await lost
  assert.deepEqual(texts(await engine.run(HELLO), '2'), ['hello'])
})

test('a process that had to be killed over a run that did not answer costs the others nothing', async (t) => {
  const processes: ChildProcess[] = []
  watchProcesses(t, (child) => processes.push(child))
  await using engine = await openTestEngine({ threads: 2 })
  const abort = new AbortController()
  const endless = { 1: { class_type: 'TestEndless', inputs: {} }, 2: show('1') }
  const started = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const [stuck, neighbour] = started.map(({ resolve }, index) =>
    engine.run(endless, {
      ...(index === 0 && { signal: abort.signal }),
      onEvent: (event) => event.type === 'log' && resolve(),
    }),
  )
  const lost = assert.rejects(neighbour, { name: 'EngineThreadLostError', isBlameless: true })
  await Promise.all(started.map(({ promise }) => promise))
  assert.equal(processes.length, 1)
  processes[0].kill('SIGSTOP')
  abort.abort()
  assert.match(lastOf(await stuck, 'failed').failure.message, /replaced: it did not answer an interrupt/)
  await lost
  assert.deepEqual(texts(await engine.run(HELLO), '2'), ['hello'])
})

test('a late reader of a process that is gone does not keep its successor from resting', async () => {
  await using engine = await openTestEngine({ restMs: 2_000 })
  const late = engine.engine.run(
    new CheckedGraph(readGraph({ 1: { class_type: 'TestEndless', inputs: {} }, 2: show('1') } as JsonValue)),
  )
  await late.next()
  await engine.run({ 1: { class_type: 'TestExit', inputs: { where: 'inline' } }, 2: show('1') })
  assert.deepEqual(texts(await engine.run(HELLO), '2'), ['hello'])
  await assert.rejects(Array.fromAsync(late), { name: 'EngineThreadLostError' })
  const deadline = performance.now() + 30_000
  while (engine.engine.memoryBytes() > 0) {
    assert.ok(performance.now() < deadline, 'the engine did not rest')
    await sleep(50)
  }
})

test('a node that blocks the engine thread itself is ended after its time, and fails its own run', async () => {
  await using engine = await openTestEngine({ nodeTimeoutMs: 3_000 })
  const events = await engine.run({ 1: { class_type: 'TestBlock', inputs: { where: 'inline' } }, 2: show('1') })
  assert.match(lastOf(events, 'failed').failure.message, /did not finish within 3 s \(setting nodeTimeout\)/)
  assert.deepEqual(texts(await engine.run(HELLO), '2'), ['hello'])
})

test('a node that blocks a compute thread fails after its time', async () => {
  await using engine = await openTestEngine({ nodeTimeoutMs: 3_000 })
  const events = await engine.run({ 1: { class_type: 'TestBlock', inputs: { where: 'compute' } }, 2: show('1') })
  const { failure } = lastOf(events, 'failed')
  assert.deepEqual([failure.exceptionType, failure.nodeId], ['TimeoutError', '1'])
  assert.match(failure.message, /TestBlock did not finish within 3 s \(setting nodeTimeout\); its thread was ended/)
  assert.equal((await engine.run({ 1: empty(256), 2: show('1') })).at(-1)?.type, 'succeeded')
})

test('while a long call holds the only compute thread, short calls of others go on', async () => {
  await using engine = await openTestEngine()
  const isTaken = Promise.withResolvers<void>()
  const held = engine.run(
    { 1: { class_type: 'TestBlock', inputs: { where: 'compute' } }, 2: show('1') },
    {
      onEvent(event) {
        if (event.type === 'node_started') isTaken.resolve()
      },
    },
  )
  const heldEnds = assert.rejects(held, /the engine thread ended/)
  await isTaken.promise
  assert.equal((await engine.run({ 1: empty(256, 5), 2: show('1') })).at(-1)?.type, 'succeeded')
  await engine[Symbol.asyncDispose]()
  await heldEnds
})

test('texts and lists that multiply end their own run before they fill the memory', async () => {
  await using engine = await openTestEngine()
  const doubled: GraphJson = { n0: { class_type: 'PrimitiveString', inputs: { value: 'x'.repeat(1024) } } }
  for (let index = 1; index <= 20; index++) {
    const text = [`n${index - 1}`, 0]
    doubled[`n${index}`] = {
      class_type: 'StringConcatenate',
      inputs: { string_a: text, string_b: text, delimiter: '' },
    }
  }
  doubled.out = show('n20')
  const nested: GraphJson = { n0: { class_type: 'PrimitiveInt', inputs: { value: 1 } } }
  for (let index = 1; index <= 9; index++) {
    const ten = Array.from({ length: 10 }, (_, input) => [`inputs.input${input}`, [`n${index - 1}`, 0]])
    nested[`n${index}`] = { class_type: 'CreateList', inputs: Object.fromEntries(ten) }
  }
  nested.out = show('n9')
  const folded: GraphJson = { n0: { class_type: 'PrimitiveString', inputs: { value: 'x' } } }
  for (let index = 1; index <= 30; index += 2) {
    const ten = Array.from({ length: 10 }, (_, input) => [`inputs.input${input}`, [`n${index - 1}`, 0]])
    folded[`n${index}`] = { class_type: 'CreateList', inputs: Object.fromEntries(ten) }
    folded[`n${index + 1}`] = { class_type: 'TestFold', inputs: { values: [`n${index}`, 0] } }
  }
  folded.out = show('n30')
  const cases: [GraphJson, RegExp][] = [
    [doubled, /the text would be 33554432 characters long; at most 16777216 are allowed/],
    [nested, /the list would have 1000000 elements; at most 100000 are allowed/],
    [folded, /the texts and lists of this result take more than 64 MiB/],
  ]
  for (const [graph, message] of cases) {
    const { failure } = lastOf(await engine.run(graph), 'failed')
    assert.equal(failure.exceptionType, 'MemoryError')
    assert.match(failure.message, message)
  }
  assert.deepEqual(texts(await engine.run(HELLO), '2'), ['hello'])
})

test('what a run holds of texts is bounded, and a neighbour with little is not asked to pay for it', async () => {
  await using engine = await openTestEngine({ values: { totalBytes: 8_388_608, runBytes: 6_291_456 } })
  const long = { class_type: 'PrimitiveString', inputs: { value: 'x'.repeat(1_048_576) } }
  const graph: GraphJson = { out: { class_type: 'StringFormat', inputs: { f_string: '{a}' } } }
  for (let index = 0; index < 8; index++) {
    graph[`t${index}`] = long
    graph[`n${index}`] = { class_type: 'StringTrim', inputs: { string: [`t${index}`, 0], mode: 'Both' } }
    graph.out.inputs[`values.${'abcdefgh'[index]}`] = [`n${index}`, 0]
  }
  graph.shown = show('out')
  const { failure } = lastOf(await engine.run(graph), 'failed')
  assert.equal(failure.exceptionType, 'MemoryError')
  assert.match(failure.message, /a running job may hold 6 MiB of texts and lists/)
  assert.deepEqual(texts(await engine.run(HELLO), '2'), ['hello'])
})

test('a node that returns nonsense fails with a message that says what is wrong', async () => {
  await using engine = await openTestEngine()
  const wanted = {
    nothing: /returned no result/,
    function: /function cannot be passed between nodes/,
    'foreign memory': /did not get from `allocate`/,
    'too few': /must return 1 outputs/,
  }
  for (const [kind, message] of Object.entries(wanted)) {
    const events = await engine.run({ 1: { class_type: 'TestNonsense', inputs: { kind } }, 2: show('1') })
    assert.match(lastOf(events, 'failed').failure.message, message)
  }
})

test('independent branches run side by side and still tell their events one node after the other', async () => {
  await using engine = await openTestEngine({ threads: 2, memoryLimitBytes: 2 ** 30 })
  const graph: GraphJson = { 1: empty(512), 4: show('2'), 5: show('3') }
  graph[2] = scale('bicubic', 900)
  graph[3] = scale('lanczos', 900)
  const events = await engine.run(graph)
  const order = outline(events).split(' ')
  for (const id of ['1', '2', '3', '4', '5']) {
    const [from, to] = [order.indexOf(`${id}+`), order.indexOf(`${id}.`)]
    assert.ok(from >= 0 && to > from)
    assert.deepEqual(
      order.slice(from, to + 1).filter((word) => !word.startsWith(id)),
      [],
    )
  }
})

test('several runs at once share the engine', async () => {
  await using engine = await openTestEngine({ threads: 2 })
  const graphs = Array.from(
    { length: 6 },
    (_, index): GraphJson => ({ 1: empty(300, index), 2: scale('area', 100), 3: show('2') }),
  )
  const all = await Promise.all(graphs.map((graph) => engine.run(graph)))
  assert.ok(all.every((events) => events.at(-1)?.type === 'succeeded'))
  assert.deepEqual(cachedIds(await engine.run(graphs[3])), ['1', '2', '3'])
})

test('a closed engine refuses runs, and closing twice is harmless', async () => {
  const engine = await openTestEngine()
  await engine[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
  await assert.rejects(engine.run(HELLO), /the engine is closed/)
})
