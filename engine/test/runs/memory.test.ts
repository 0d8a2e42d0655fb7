/** What runs take of the machine, and that all of it is given back however they end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { collectGarbage } from '../../../lib/threads/garbage.ts'
import { openMemoryDesk } from '../../threads/memory-line.ts'
import { extremeFiles, extremeGraph } from '../support/extreme-graphs.ts'
import { type GraphJson, lastOf, openTestEngine, type TestEngine } from '../support/harness.ts'

const MIB = 1_048_576
// The bar: how much more than at the start may be occupied after a run that failed or was cancelled.
const GROWTH_BYTES = 100 * MIB
// How long it may take on a busy machine until memory that was given back is seen to be back.
const SETTLE_MS = 60_000

const empty = (side: number, color = 0) => ({
  class_type: 'EmptyImage',
  inputs: { width: side, height: side, batch_size: 1, color },
})
const tiles = (overlap: number) => ({
  class_type: 'SplitImageToTileList',
  inputs: { image: ['1', 0], tile_width: 64, tile_height: 64, overlap },
})
const save = (id: string) => ({ class_type: 'SaveImage', inputs: { images: [id, 0], filename_prefix: 'saved' } })
const SMALL: GraphJson = { 1: empty(64, 5), 2: save('1') }

const occupied = ({ engine }: TestEngine) => process.memoryUsage.rss() + engine.memoryBytes()

/** What is occupied once an engine has run. */
async function begin(engine: TestEngine): Promise<number> {
  assert.equal((await engine.run(SMALL)).at(-1)?.type, 'succeeded')
  while (engine.engine.memoryBytes() === 0) await sleep(20)
  return occupied(engine)
}

async function returnsTo(start: number, engine: TestEngine, what: string): Promise<void> {
  const deadline = performance.now() + SETTLE_MS
  while (occupied(engine) > start + GROWTH_BYTES) {
    const grown = Math.round((occupied(engine) - start) / MIB)
    assert.ok(performance.now() < deadline, `${what}: ${grown} MiB more than at the start`)
    collectGarbage('major')
    await sleep(50)
  }
}

test('a thread that is woken before its answer is there waits on, and takes no answer of another request', async () => {
  let isOver = false
  const desk = openMemoryDesk(async (request) => {
    assert.ok(request.type === 'allocate')
    // Woken once, it waits again before it is answered.
    for (let wakes = 0; wakes < 2 && !isOver; await nextTurn()) wakes += Atomics.notify(desk.line.bell, 0)
    return { buffer: new SharedArrayBuffer(request.bytes) }
  })
  const sizes = [16, 4096, 64, 1_000_000]
  const asker = new Worker(new URL('../support/memory-asker.ts', import.meta.url), {
    workerData: { line: desk.line, sizes },
    transferList: [desk.line.port],
  })
  try {
    const [answers] = await once(asker, 'message')
    assert.deepEqual(answers, sizes)
  } finally {
    isOver = true
    await asker.terminate()
    desk[Symbol.dispose]()
  }
})

describe('a list of tiles', () => {
  test('is refused by its length and by its size before it is cut', async () => {
    await using engine = await openTestEngine({ memoryLimitBytes: 512 * MIB, maxImagePixels: 2 ** 28 })
    const start = await begin(engine)
    const cases: [number, RegExp][] = [
      [5200, /^the list would have 103684 elements; at most 100000 are allowed/],
      [2048, /^memory limit of 512 MiB reached: this node asked for 733 MiB while \d+ MiB were in use\. Use smaller/],
    ]
    for (const [side, message] of cases) {
      let most = 0
      const looking = setInterval(() => {
        most = Math.max(most, engine.engine.memoryBytes())
      }, 20)
      const { failure } = lastOf(await engine.run({ 1: empty(side), 2: tiles(63), 3: save('2') }), 'failed')
      clearInterval(looking)
      assert.deepEqual([failure.exceptionType, failure.nodeId], ['MemoryError', '2'])
      assert.match(failure.message, message)
      assert.ok(most < start + side * side * 12 + GROWTH_BYTES, `${most} bytes for nothing but a picture`)
      await returnsTo(start, engine, `tiles of ${side}`)
    }
    assert.equal((await engine.run(SMALL)).at(-1)?.type, 'succeeded')
  })

  test('that fits is cut, and the memory of a run that is cancelled while it saves them is given back', async () => {
    await using engine = await openTestEngine({ memoryLimitBytes: 512 * MIB })
    const start = await begin(engine)
    const abort = new AbortController()
    const events = await engine.run(
      { 1: empty(1536), 2: tiles(63), 3: save('2') },
      {
        signal: abort.signal,
        onEvent(event) {
          if (event.type === 'node_started' && event.nodeId === '3') abort.abort()
        },
      },
    )
    assert.equal(events.at(-1)?.type, 'interrupted')
    await returnsTo(start, engine, 'cancelled')
  })
})

test('what a call makes after its run was cancelled, or failed elsewhere, is given back', async () => {
  await using engine = await openTestEngine({ memoryLimitBytes: 64 * MIB, threads: 2 })
  const late = { 1: { class_type: 'TestLate', inputs: {} }, 2: save('1') }
  for (let turn = 0; turn < 4; turn += 1) {
    const abort = new AbortController()
    const cancelled = await engine.run(late, {
      signal: abort.signal,
      onEvent: (event) => event.type === 'log' && event.text.includes('started') && abort.abort(),
    })
    assert.equal(cancelled.at(-1)?.type, 'interrupted')
    const failing = { 3: { class_type: 'TestSyncError', inputs: { value: ['4', 0] } }, 4: empty(8), 5: save('3') }
    assert.equal((await engine.run({ ...late, ...failing })).at(-1)?.type, 'failed')
  }
  const deadline = performance.now() + SETTLE_MS
  while ((await engine.run({ 1: empty(2048), 2: save('1') })).at(-1)?.type !== 'succeeded')
    assert.ok(performance.now() < deadline, 'the memory of calls that ended late is still taken')
})

test('results that are kept are part of what the engine says it occupies, until a run fails', async () => {
  await using engine = await openTestEngine({ memoryLimitBytes: 1024 * MIB })
  const start = await begin(engine)
  assert.equal((await engine.run({ 1: empty(4096, 9), 2: save('1') })).at(-1)?.type, 'succeeded')
  // A picture of 192 MiB.
  while (engine.engine.memoryBytes() < start - process.memoryUsage.rss() + 150 * MIB) await sleep(20)
  const failed = await engine.run({
    1: empty(64),
    2: tiles(0),
    3: { class_type: 'TestExit', inputs: { where: 'compute' } },
    4: { class_type: 'PreviewAny', inputs: { source: ['3', 0] } },
  })
  assert.equal(failed.at(-1)?.type, 'failed')
  await returnsTo(start, engine, 'failed')
})

test('after every class with extreme inputs, failed or cancelled, the memory is back', async () => {
  await using engine = await openTestEngine({ memoryLimitBytes: 512 * MIB, maxImagePixels: 2 ** 26 })
  const files = await extremeFiles()
  const start = await begin(engine)
  const catalog = engine.engine.catalog()
  const classes = catalog.classTypes().filter((name) => !name.startsWith('Test'))
  assert.ok(classes.length > 180)
  const ends = new Map<string, number>()
  while (classes.length > 0) {
    const group = classes.splice(0, 8)
    // An engine that was ended starts again, so that the time of the others is spent on their nodes.
    await engine.run(SMALL)
    const signal = AbortSignal.timeout(1_500)
    const runs = group.flatMap((name) => [extremeGraph(catalog, name, 'large'), extremeGraph(catalog, name, 'listed')])
    // An engine that takes too long to answer the cancel is ended, and its runs with it: that is an end as well.
    const endOf = (graph: GraphJson) => engine.run(graph, { signal, files }).then((events) => events.at(-1)!.type)
    for (const end of await Promise.allSettled(runs.map(endOf))) {
      const type = end.status === 'fulfilled' ? end.value : 'lost'
      ends.set(type, (ends.get(type) ?? 0) + 1)
    }
    // The next run that does not succeed gives back what others may have left on purpose.
    await engine.run({ 1: empty(8), 2: { class_type: 'ImageScaleBy', inputs: {} }, 3: save('2') })
    await returnsTo(start, engine, group.join(', '))
  }
  const unsuccessful = ['failed', 'interrupted', 'lost'].reduce((sum, type) => sum + (ends.get(type) ?? 0), 0)
  assert.ok(unsuccessful > 100, JSON.stringify([...ends]))
  assert.equal((await engine.run(SMALL)).at(-1)?.type, 'succeeded')
})
