import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createNodeSpans, toSpanFields } from './node-spans.ts'

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
