import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../../../engine/graph/graph-json.ts'
import { toFailure } from './node-failure.ts'

const graph = readGraph({ '3': { class_type: 'KSampler', inputs: { seed: 1, model: ['1', 0] } } })
const bounds = {
  graph,
  maxMessageBytes: 20,
  maxTracebackBytes: 30,
  redact: (text: string) => text.replaceAll('secret', '***'),
}

test('a failure keeps the beginning of its message and the end of its traceback, in whole characters', () => {
  const failure = toFailure(
    {
      node_id: '3',
      node_type: 'KSampler',
      exception_type: 'ValueError',
      exception_message: `secret ${'é'.repeat(50)}`,
      traceback: ['é'.repeat(1_000), 'the last line\n'],
    },
    bounds,
  )
  assert.deepEqual([failure.nodeId, failure.classType, failure.exceptionType], ['3', 'KSampler', 'ValueError'])
  assert.match(failure.message, /^\*\*\* é+$/)
  assert.ok(Buffer.byteLength(failure.message) <= 20)
  assert.match(failure.traceback ?? '', /^é+the last line\n$/)
  assert.ok(Buffer.byteLength(failure.traceback ?? '') <= 30)
})

test('what the node was given is told without hidden inputs, shortened and free of credentials', () => {
  const failure = toFailure(
    {
      node_id: '3',
      exception_message: 'x',
      executed: ['1', 2],
      current_outputs: ['1', '3'],
      current_inputs: { seed: [1, 'a secret'], model: ['t'.repeat(5_000)], api_key_comfy_org: ['sk-1'], prompt: [{}] },
    },
    bounds,
  )
  assert.deepEqual(failure.currentInputs?.seed, [1, 'a ***'])
  assert.equal(String(failure.currentInputs?.model?.[0]).length, 1_000)
  assert.deepEqual(Object.keys(failure.currentInputs ?? {}), ['seed', 'model'])
  assert.deepEqual([failure.executed, failure.currentOutputs], [['1'], ['1', '3']])
})

test('an error without a message is still an error', () => {
  const failure = toFailure(null, bounds)
  assert.deepEqual([failure.code, failure.nodeId, failure.traceback], ['node_execution_error', null, null])
  assert.notEqual(failure.message, '')
})

test("an error that only repeats what the caller wrote is not the machine's", () => {
  const quoting = readGraph({ '3': { class_type: 'Say', inputs: { text: '[Errno 28] No space left on device' } } })
  const error = {
    node_id: '3',
    exception_type: 'RuntimeError',
    exception_message: 'cannot say "[Errno 28] No space left on device"',
  }
  assert.equal(toFailure(error, { ...bounds, graph: quoting }).code, 'node_execution_error')
  assert.equal(toFailure(error, bounds).code, 'machine_fault')
})
