/**
 * Every recorded run once more, against the whole service with its built-in engine: the same answer, the same frames in the
 * same order, the same history. Recordings that are added to the folder are replayed by themselves.
 */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { systemClock } from '../../../../../lib/clock.ts'
import { type JsonObject, type JsonValue, NumberText } from '../../../../../lib/json/lossless-json.ts'
import { silentLog } from '../../../../../lib/log.ts'
import { startTestApp, type TestApp } from '../../../../../test/support/app/start-app.ts'
import { type Frame, isText } from '../../../../../test/support/clients/test-socket.ts'
import { assertSameShape, compareFrames } from '../../../../../test/support/recordings/compare-recording.ts'
import {
  cachedNodesOf,
  listRecordedRuns,
  promptIdOf,
  type RecordedRun,
} from '../../../../../test/support/recordings/recorded-runs.ts'
import { type Replay, replay } from '../../../../../test/support/recordings/replay-recording.ts'
import { openEmbeddedEngine } from '../../../../adapters/engines/embedded/engine.ts'
import type { Engine } from '../../../../domain/engine/engine-port.ts'

/** The real engine, whose cache can be emptied between two recordings. */
interface EngineWithFreshCache extends Engine {
  emptyCache(): void
}

async function openEngineWithFreshCache(): Promise<EngineWithFreshCache> {
  const engine = await openEmbeddedEngine({
    threads: 1,
    memoryLimitBytes: 268_435_456,
    maxImagePixels: 10_000_000,
    log: silentLog,
    clock: systemClock,
    nodeModules: [new URL('../../../../../test/support/engines/recording-nodes.ts', import.meta.url).href],
  })
  let cache = 0
  return {
    emptyCache: () => void cache++,
    catalog: () => engine.catalog(),
    run: (run, options) => engine.run({ ...run, accountId: `cache ${cache}` }, options),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}

let engine: EngineWithFreshCache
let app: TestApp
before(async () => {
  engine = await openEngineWithFreshCache()
  // One at a time, as ComfyUI runs them.
  app = await startTestApp({ overrides: { engine }, settings: { workers: '1' } })
})
after(async () => {
  await app[Symbol.asyncDispose]()
  await engine[Symbol.asyncDispose]()
})

const runs = listRecordedRuns()

test('there are recordings with and without a socket', () => {
  assert.ok(runs.length >= 15)
  assert.ok(runs.some(({ websocket }) => websocket === null))
})

for (const run of runs) {
  test(`${run.name}: the same as on ComfyUI`, async () => {
    // ComfyUI caches the results of the run before; a recording without cached nodes was made with an empty cache.
    if (cachedNodesOf(run).length === 0) engine.emptyCache()
    const replayed = await replay(app.url, run)
    assert.equal(replayed.post.status, run.post.response.status)
    assertSameShape(replayed.post.body, run.post.response.body)
    await compareFrames(untilFirstExchange(run, replayed), run.frames, replayed.ids)
    compareHistory(run, replayed)
    if (run.job !== null) assertSameShape(replayed.job, withoutVolatile(run.job), 'job')
  })
}

/** How many steps fit between two exchanges depends on the machine: of each node only the first one is compared. */
function untilFirstExchange(run: RecordedRun, { frames }: Replay): readonly Frame[] {
  if (Object.keys(run.during).length === 0) return frames
  const first = frames.findIndex((frame) => isText(frame, 'progress'))
  return frames.filter(
    (frame, index) => index <= first || !(isText(frame, 'progress') || isText(frame, 'progress_state')),
  )
}

interface HistoryEntry extends JsonObject {
  readonly status: {
    readonly status_str: string
    readonly completed: boolean
    readonly messages: [string, JsonObject][]
  }
  readonly outputs: JsonObject
}

function compareHistory(run: RecordedRun, { history, ids }: Replay): void {
  const recordedId = promptIdOf(run.post)
  const recorded = run.history[recordedId] as HistoryEntry
  const ours = history[ids.get(recordedId) ?? ''] as HistoryEntry
  assert.equal(ours.status.status_str, recorded.status.status_str)
  assert.equal(ours.status.completed, recorded.status.completed)
  const types = ({ status }: HistoryEntry) => status.messages.map(([type]) => type)
  assert.deepEqual(types(ours), types(recorded))
  assertSameShape(ours.outputs, recorded.outputs, 'outputs')
  assert.deepEqual(Object.keys(ours.outputs).toSorted(), Object.keys(recorded.outputs).toSorted())
}

/** What the recording shows of its own server: stack frames, printed tensors, lists in the order of a hash table. */
function withoutVolatile(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutVolatile)
  if (typeof value !== 'object' || value === null || value instanceof NumberText) return value
  const kept = Object.entries(value).filter(([key]) => !VOLATILE.has(key))
  return Object.fromEntries(kept.map(([key, part]) => [key, withoutVolatile(part)]))
}

const VOLATILE: ReadonlySet<string> = new Set(['traceback', 'current_inputs', 'current_outputs', 'executed'])
