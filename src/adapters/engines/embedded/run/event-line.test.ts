import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventLine } from './event-line.ts'
import type { RunEvent } from './run-event.ts'

const ref = (nodeId: string) => ({ nodeId, classType: 'X', displayNodeId: nodeId, parentNodeId: null })

test('a node is heard whole before the one that started after it', () => {
  const told: string[] = []
  const line = createEventLine((event: RunEvent) => told.push('nodeId' in event ? `${event.nodeId} ${event.type}` : ''))
  const [first, second] = [line.open(), line.open()]
  second.send({ type: 'node_started', ...ref('2') })
  first.send({ type: 'node_started', ...ref('1') })
  for (let value = 1; value <= 100; value++) second.send({ type: 'node_progress', ...ref('2'), value, max: 100 })
  second.send({ type: 'node_finished', ...ref('2') })
  second.close()
  assert.deepEqual(told, ['1 node_started'])
  first.send({ type: 'node_finished', ...ref('1') })
  first.close()
  // Of what had to wait, only the newest progress was kept.
  assert.deepEqual(told.slice(1), ['1 node_finished', '2 node_started', '2 node_progress', '2 node_finished'])
})

test('at the end of a run everything that waits is told', () => {
  const told: string[] = []
  const line = createEventLine((event) => told.push(event.type))
  line.open()
  line.open().send({ type: 'node_started', ...ref('2') })
  line.flush()
  assert.deepEqual(told, ['node_started'])
})
