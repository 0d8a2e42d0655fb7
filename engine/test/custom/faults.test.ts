/** Custom nodes that misbehave: each fails its own job, with a clear error, and everything else goes on. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { EngineEvent } from '../../graph/run-event.ts'
import { dumped, type GraphJson, lastOf, openTestEngine, type TestEngine, texts } from '../support/harness.ts'
import { FAULTS } from './nodes/misbehaving.ts'

const FOLDERS = [fileURLToPath(new URL('./nodes', import.meta.url))]
const MIB = 1_048_576
// Of the engine whose nodes hang. Calls that do not hang take milliseconds, on a busy machine a second.
const IMPATIENT_MS = 10_000

let engine: TestEngine
let impatient: TestEngine
before(async () => {
  const open = (timeoutMs: number) =>
    openTestEngine({
      memoryLimitBytes: 128 * MIB,
      customNodes: { folders: FOLDERS, timeoutMs, heapBytes: 64 * MIB },
    })
  ;[engine, impatient] = await Promise.all([open(600_000), open(IMPATIENT_MS)])
})
after(async () => {
  await engine[Symbol.asyncDispose]()
  await impatient[Symbol.asyncDispose]()
})

const dump = (id: string, slot = 0) => ({ class_type: 'TestDump', inputs: { source: [id, slot] } })
const misbehave = (how: string): GraphJson => ({ 1: { class_type: 'Misbehaves', inputs: { how } }, 2: dump('1', 1) })
const WAITS: GraphJson = { 1: { class_type: 'Waits', inputs: {} }, 2: dump('1') }
const HELLO: GraphJson = {
  1: { class_type: 'EmptyImage', inputs: { width: 300, height: 300, batch_size: 1, color: 7 } },
  2: { class_type: 'ImageInvert', inputs: { image: ['1', 0] } },
  3: { class_type: 'PrimitiveString', inputs: { value: 'hello' } },
  4: { class_type: 'PreviewAny', inputs: { source: ['3', 0] } },
  5: { class_type: 'PreviewAny', inputs: { source: ['2', 0] } },
}

function logOf(events: readonly EngineEvent[]): string {
  return events.flatMap((event) => (event.type === 'log' ? [event.text] : [])).join('')
}

async function assertWell(used: TestEngine): Promise<void> {
  assert.deepEqual(dumped(await used.run(misbehave('is well')), '2'), [{ kind: 'str', value: 'well' }])
}

const EXPECTED: Readonly<Record<string, readonly [exceptionType: string, message: RegExp]>> = {
  'throws an error': ['TypeError', /^no such colour$/],
  'throws a text': ['RuntimeError', /^a node threw just a text$/],
  'throws null': ['RuntimeError', /^a node threw null$/],
  'throws what has no text': ['RuntimeError', /something that has no text/],
  'throws an unprintable error': ['RuntimeError', /something that has no text/],
  'returns nothing': ['TypeError', /^the result: expected an object with image, value, got undefined$/],
  'returns a list': ['TypeError', /^the result: expected an object with image, value, got Array$/],
  'returns too little': ['TypeError', /^the result lacks the output image$/],
  'returns too much': ['TypeError', /^the result has more, which is not an output of this node$/],
  'returns a wrong type': ['TypeError', /^output image: expected a tensor .*, got string$/],
  'returns a promise inside': ['TypeError', /^output image: expected a tensor .*, got Promise$/],
  'returns a function inside': ['TypeError', /^output value: expected a plain value, got function$/],
  'returns a map': ['TypeError', /^output value: expected a plain value, got Map$/],
  'returns a circle': ['TypeError', /^output value: nested deeper than 64 levels$/],
  'returns NaN as a side': ['ValueError', /^output image: \[1, NaN, 1, 3\] is not a shape/],
  'returns a negative side': ['ValueError', /^output image: \[1, -1, 1, 3\] is not a shape/],
  'returns too few pixels': [
    'ValueError',
    /^output image: a shape of \[1, 100, 100, 3\] needs 30000 values, data has 3$/,
  ],
  'returns a wrong rank': ['ValueError', /^output image: expected 4 dimensions, got 1$/],
  'returns huge tensors': ['MemoryError', /^memory limit of 128 MiB reached/],
  'returns a huge text': ['MemoryError', /^output value: more than 64 MiB of plain values/],
  'makes an impossible tensor': ['ValueError', /Invalid typed array length/],
  'throws in a getter': ['RuntimeError', /^caught you$/],
  'ends the process': ['RuntimeError', /^Misbehaves ended its thread; the thread was replaced$/],
  'rejects without a handler': ['RuntimeError', /^nobody handles this$/],
  'throws in a timer': ['RuntimeError', /^thrown in a timer$/],
  'loops without end': ['TimeoutError', /^Misbehaves did not finish within 10 s \(setting nodeTimeout\)/],
  'never settles': ['TimeoutError', /^Misbehaves did not finish within 10 s \(setting nodeTimeout\)/],
  'fills the heap': ['MemoryError', /^Misbehaves ran out of memory; its thread was replaced$/],
  'fills buffers': [
    'MemoryError',
    /^Misbehaves held more than 128 MiB in buffers, .*; its thread was ended\. Use smaller/,
  ],
  'reports nonsense': ['TypeError', /^progress: NaN of 3 makes no sense/],
}

describe('a custom node that misbehaves', () => {
  test('every fault has its expectation', () => assert.deepEqual(Object.keys(EXPECTED), Object.keys(FAULTS)))

  for (const [how, [exceptionType, message]] of Object.entries(EXPECTED)) {
    test(`${how}: its job fails and says why, the next one succeeds`, async () => {
      const used = exceptionType === 'TimeoutError' ? impatient : engine
      const events = await used.run(misbehave(how))
      const { failure } = lastOf(events, 'failed')
      assert.match(failure.message, message)
      assert.deepEqual([failure.nodeId, failure.exceptionType], ['1', exceptionType])
      assert.match(logOf(events), new RegExp(`^begins: ${how}\n`))
      await assertWell(used)
    })
  }

  test('the traceback names the lines of its module and no place on this machine', async () => {
    const { failure } = lastOf(await engine.run(misbehave('throws in a getter')), 'failed')
    assert.match(failure.traceback ?? '', /in .*, misbehaving\.ts line \d+\n.*RuntimeError: caught you/s)
    assert.ok(!JSON.stringify(failure).includes(FOLDERS[0]))
  })

  test('megabytes of prints are cut, and the job succeeds', async () => {
    const events = await engine.run(misbehave('prints megabytes'))
    assert.deepEqual(dumped(events, '2'), [{ kind: 'str', value: 'printed' }])
    const log = logOf(events)
    assert.ok(log.length < 300_000, `${log.length} characters`)
    assert.match(log, /this node printed too much; the rest is left out/)
    assert.ok(events.filter(({ type }) => type === 'log').length < 100)
  })

  test('what it leaves running meets no later call', async () => {
    assert.equal((await engine.run(misbehave('leaves a timer behind'))).at(-1)?.type, 'succeeded')
    // Were the thread used again, this call would be running when the timer goes off.
    const abort = new AbortController()
    const events = await engine.run(WAITS, {
      signal: abort.signal,
      onEvent: (event) => void (event.type === 'log' && setTimeout(() => abort.abort(), 100)),
    })
    assert.equal(events.at(-1)?.type, 'interrupted', JSON.stringify(events.at(-1)))
  })

  test('messages to the thread that started it go nowhere', async () => {
    const events = await engine.run(misbehave('speaks to the wrong port'))
    assert.deepEqual(dumped(events, '2'), [{ kind: 'str', value: 'posted' }])
  })
})

describe('a custom node and a cancel', () => {
  const cancelWhenItRuns = (graph: GraphJson) => {
    const abort = new AbortController()
    const onEvent = (event: EngineEvent) => void (event.type === 'log' && abort.abort())
    return engine.run(graph, { signal: abort.signal, onEvent })
  }

  test('the run ends although its node never would, whether the node listens or not, and the threads come back', async () => {
    for (const graph of [WAITS, misbehave('loops without end'), misbehave('never settles')]) {
      assert.equal((await cancelWhenItRuns(graph)).at(-1)?.type, 'interrupted')
    }
    await assertWell(engine)
  })

  test('nodes that hang hold up other custom nodes at most, and those only until they are ended', async () => {
    const hanging = Array.from({ length: 3 }, () => impatient.run(misbehave('loops without end')))
    const events = await impatient.run(HELLO)
    assert.deepEqual(texts(events, '4'), ['hello'])
    for (const run of hanging) assert.equal(lastOf(await run, 'failed').failure.exceptionType, 'TimeoutError')
    await assertWell(impatient)
  })
})
