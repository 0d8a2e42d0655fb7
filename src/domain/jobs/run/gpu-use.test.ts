import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineEvent, NodeRef } from '../../../../engine/graph/run-event.ts'
import { GpuMeter, sumClasses, toKeptUse, unseenUse } from './gpu-use.ts'

const node: NodeRef = { nodeId: '1', classType: 'A', displayNodeId: '1', parentNodeId: null }
const started: EngineEvent = { type: 'started', nodesTotal: 1 }

function read(events: readonly (readonly [EngineEvent, atMs: number])[], untilMs: number, adoptedSinceMs?: number) {
  const meter = new GpuMeter(adoptedSinceMs ?? null)
  for (const [event, atMs] of events) meter.take(event, atMs)
  return meter.read(untilMs)
}

test('what the engine says counts, whatever we saw of it', () => {
  const events = [
    [started, 100],
    [{ type: 'node_started', ...node }, 200],
  ] as const
  assert.equal(read([...events, [{ type: 'succeeded', computedMs: 7000 }, 900]], 5000), 7000)
  assert.equal(read([...events, [{ type: 'interrupted', computedMs: 0 }, 900]], 5000), 0)
})

test('without that it counts from the first news of its nodes until its end, or until nobody waited for it any more', () => {
  const begun = [
    [started, 100],
    [{ type: 'cached', nodeIds: [] }, 200],
    [{ type: 'node_started', ...node }, 250],
  ] as const
  assert.equal(read([...begun, [{ type: 'succeeded' }, 900]], 5000), 700)
  assert.equal(read(begun, 5000), 4800)
  assert.equal(read([[started, 100]], 5000), 4900, 'of a server that tells no news')
  assert.equal(read([], 5000), 0, 'it never began')
})

test('a run that is taken on counts from its beginning, and one that nobody has any more counts nothing', () => {
  assert.equal(read([[started, 3000]], 5000, 1000), 4000)
  assert.equal(read([], 5000, 1000), 0)
})

test('nodes count for their class, also one that did not end', () => {
  const span = (nodeId: string, startedAtMs: number | null, endedAtMs: number | null) => ({
    ...{ nodeId, startedAtMs, endedAtMs, step: null, steps: null },
  })
  const spans = [span('1', 0, 10), span('2', 10, 15), span('3', 15, null), span('4', null, null), span('5', 1, 2)]
  const classes = new Map([...['1', '3', '4'].map((id) => [id, 'A'] as const), ['2', 'B'] as const])
  const sum = sumClasses({ spans, classOf: (nodeId) => classes.get(nodeId) ?? null, nowMs: 20 })
  assert.deepEqual(sum, { A: 15, B: 5 })
})

test('what is kept has bounds', () => {
  const classes = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`class ${index}`, index]))
  const weights = Array.from({ length: 100 }, (_, index) => `${index}`.padEnd(1000, 'x'))
  const kept = toKeptUse({ ms: 1e9, classes, weights }, 10_000)
  assert.deepEqual([kept.ms, Object.keys(kept.classes).length, kept.weights.length], [10_000, 64, 64])
  assert.equal(kept.classes['class 99'], 99)
  assert.ok(kept.weights.every((name) => name.length === 300))
  assert.deepEqual(toKeptUse({ ms: -5, classes: { A: 3 }, weights: [] }, 100), { ms: 0, classes: {}, weights: [] })
})

test('of a run that nobody saw only the time is known, and only where a server had it', () => {
  const run = { engineId: 'gpu1', startedAt: new Date(1000), foreseenMs: 5 }
  assert.deepEqual(unseenUse(run, new Date(3500)), { ms: 2500, classes: {}, weights: [] })
  assert.equal(unseenUse({ ...run, engineId: 'embedded' }, new Date(3500)), null)
  assert.equal(unseenUse({ ...run, foreseenMs: null }, new Date(3500)), null)
  assert.equal(unseenUse({ ...run, engineId: 'embedded-gpu:8188' }, new Date(3500))?.ms, 2500)
})
