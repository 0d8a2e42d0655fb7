import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Blocker, type Slot } from '../../values/value.ts'
import { mergeOutputs, planCalls } from './call-node.ts'

const lists = (record: Record<string, Slot>) => new Map(Object.entries(record))
const inputsOf = (record: Record<string, Slot>, isInputList = false) =>
  planCalls(lists(record), isInputList).map(({ inputs }) => inputs)

test('lists of 1, 3 and 5 give five calls, shorter ones repeating their last value', () => {
  const calls = inputsOf({ a: [0], b: [1, 2, 3], c: [1, 2, 3, 4, 5] })
  assert.deepEqual(
    calls.map(({ a, b, c }) => [a, b, c]),
    [
      [0, 1, 1],
      [0, 2, 2],
      [0, 3, 3],
      [0, 3, 4],
      [0, 3, 5],
    ],
  )
})

test('a node without inputs is called once', () => {
  assert.deepEqual(inputsOf({}), [{}])
})

test('a list node is called once with whole lists', () => {
  assert.deepEqual(inputsOf({ a: [1, 2], b: ['x'] }, true), [{ a: [1, 2], b: ['x'] }])
})

test('a blocker stops only the calls that see it; a list node is stopped by any', () => {
  const blocker = new Blocker(null)
  assert.deepEqual(
    planCalls(lists({ a: [1, blocker, 3] }), false).map((call) => call.blocker),
    [null, blocker, null],
  )
  assert.equal(planCalls(lists({ a: [1, blocker, 3] }), true)[0].blocker, blocker)
})

test('list outputs are joined, others collected; a blocker stays one element', () => {
  const blocker = new Blocker(null)
  const merged = mergeOutputs(
    [
      [[1, 2], 'a'],
      [blocker, 'b'],
      [[3], 'c'],
    ],
    [true, false],
  )
  assert.deepEqual(merged, [
    [1, 2, blocker, 3],
    ['a', 'b', 'c'],
  ])
})

test('empty lists are refused', () => {
  assert.throws(() => inputsOf({ a: [], b: [1] }), /a: the list of values is empty/)
  assert.throws(() => inputsOf({ a: [] }), /the list of values is empty/)
  assert.throws(() => mergeOutputs([[1]], [true]), /is a list/)
})
