import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createEventLine, type RunEvent } from './run-state.ts'

const ref = (nodeId: string) => ({ nodeId, classType: 'X', displayNodeId: nodeId, parentNodeId: null })

test('a node is heard whole before the one that started after it', () => {
  const told: string[] = []
  const line = createEventLine((event: RunEvent) => told.push('nodeId' in event ? `${event.nodeId} ${event.type}` : ''))
  const [first, second] = [line.open(), line.open()]
  second.send({ type: 'node_started', ...ref('2') })
  first.send({ type: 'node_started', ...ref('1') })
  second.send({ type: 'node_progress', ...ref('2'), value: 1, max: 1 })
  second.send({ type: 'node_finished', ...ref('2') })
  second.close()
  assert.deepEqual(told, ['1 node_started'])
  first.send({ type: 'node_finished', ...ref('1') })
  first.close()
  assert.deepEqual(told.slice(1), ['1 node_finished', '2 node_started', '2 node_progress', '2 node_finished'])
})

test('of a flood that has to wait only the newest steps are kept, and every result', () => {
  const told: RunEvent[] = []
  const line = createEventLine((event) => void told.push(event))
  const [first, second] = [line.open(), line.open()]
  const picture = (bytes: number, isResult: boolean) =>
    second.send({ type: 'preview', ...ref('2'), contentType: 'image/png', bytes: new Uint8Array(bytes), isResult })
  for (let index = 0; index < 4; index++) picture(1_000_000, true)
  for (let value = 1; value <= 10_000; value++) second.send({ type: 'node_progress', ...ref('2'), value, max: 10_000 })
  for (let index = 0; index < 100; index++) picture(10, false)
  second.close()
  first.close()
  const results = told.filter((event) => event.type === 'preview' && event.isResult)
  const steps = told.flatMap((event) => (event.type === 'node_progress' ? [event.value] : []))
  assert.equal(results.length, 4)
  assert.deepEqual(steps, [10_000])
  assert.equal(told.length, 6)
})

test('at the end of a run everything that waits is told', () => {
  const told: string[] = []
  const line = createEventLine((event) => told.push(event.type))
  line.open()
  line.open().send({ type: 'node_started', ...ref('2') })
  line.flush()
  assert.deepEqual(told, ['node_started'])
})
