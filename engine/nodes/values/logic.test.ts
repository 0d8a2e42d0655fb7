import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NumberText } from '../../../lib/json/lossless-json.ts'
import type { EngineNode } from '../../node/define-node.ts'
import { readInputs } from '../../node/node-call.ts'
import type { CallResult, NodeContext } from '../../node/node-context.ts'
import { Tensor } from '../../tensor/tensor.ts'
import type { Value } from '../../values/value.ts'
import { andNode, customCombo, notNode, orNode, switchNode } from './logic-and-maths.ts'

function run(node: EngineNode, inputs: Record<string, Value>): readonly Value[] {
  return (node.run(readInputs(node, inputs), {} as NodeContext) as CallResult).outputs as readonly Value[]
}

const tensor = (...numbers: number[]) => {
  const data = new Float32Array(new SharedArrayBuffer(4 * numbers.length))
  data.set(numbers)
  return new Tensor([numbers.length], data)
}

test('nothing, zero and everything empty is false; all else is true, also the word false', () => {
  const untrue: Value[] = [null, false, 0, 0n, new NumberText('0.0'), '', [], {}, tensor(0)]
  for (const value of untrue) assert.deepEqual(run(notNode, { value }), [true])
  const true_: Value[] = [true, -1, 0.5, 'false', [0], { a: 0 }, tensor(2)]
  for (const value of true_) assert.deepEqual(run(notNode, { value }), [false])
})

test('an image has no truth', () => {
  assert.throws(() => run(notNode, { value: tensor(1, 2) }), { exceptionType: 'RuntimeError', message: /ambiguous/ })
})

test('and wants all of its values to be true, or at least one', () => {
  const mixed = { 'values.value0': 1, 'values.value3': '' }
  assert.deepEqual(run(andNode, mixed), [false])
  assert.deepEqual(run(orNode, mixed), [true])
  assert.deepEqual(run(andNode, { 'values.value0': 'x' }), [true])
})

test('a switch asks for the branch it needs and for nothing that is there', () => {
  const ask = (inputs: Record<string, Value>) => switchNode.askLazy(readInputs(switchNode, inputs))
  assert.deepEqual(ask({ switch: true }), ['on_true'])
  assert.deepEqual(ask({ switch: false, on_true: 1 }), ['on_false'])
  assert.deepEqual(ask({ switch: false, on_false: 1 }), [])
  // Whatever a link brings counts by its truth.
  assert.deepEqual(ask({ switch: 0, on_true: 1 }), ['on_false'])
})

test('a custom choice is handed on with the index that the editor sends', () => {
  assert.deepEqual(run(customCombo, { choice: 'zzz' }), ['zzz', 0])
  assert.deepEqual(run(customCombo, { choice: 'b', index: 1 }), ['b', 1])
})
