import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { EngineEvent } from '../../../../../engine/graph/run-event.ts'
import { EventQueue } from './run-emitter.ts'

const node = { nodeId: '1', classType: 'X', displayNodeId: '1', parentNodeId: null }
const step = (value: number): EngineEvent => ({ type: 'node_progress', ...node, value, max: 9 })
const preview = (value: number): EngineEvent => ({
  type: 'preview',
  ...node,
  contentType: 'image/png',
  bytes: Uint8Array.of(value),
})
const report: EngineEvent = { type: 'node_report', ...node, report: {}, cached: false }

async function drain(events: AsyncIterable<EngineEvent>): Promise<string[]> {
  const seen: string[] = []
  for await (const event of events) seen.push(event.type === 'node_progress' ? `step ${event.value}` : event.type)
  return seen
}

test('a slow reader loses previews first, then steps, the oldest first, and no report', async () => {
  const queue = new EventQueue(4)
  for (const event of [step(1), report, preview(1), step(2), step(3), step(4), report, { type: 'succeeded' } as const])
    queue.push(event)
  queue.end()
  assert.deepEqual(await drain(queue), ['node_report', 'step 4', 'node_report', 'succeeded'])
})

test('events that were pushed are read before the failure is thrown', async () => {
  const queue = new EventQueue(4)
  queue.push(step(1))
  queue.fail(new Error('gone'))
  queue.push(step(2))
  const seen: EngineEvent[] = []
  await assert.rejects(async () => {
    for await (const event of queue) seen.push(event)
  }, /gone/)
  assert.equal(seen.length, 1)
})

test('a reader who waits is woken', async () => {
  const queue = new EventQueue(4)
  const seen = drain(queue)
  await Promise.resolve()
  queue.push(step(7))
  queue.end()
  assert.deepEqual(await seen, ['step 7'])
})
