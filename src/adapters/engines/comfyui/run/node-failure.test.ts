import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph } from '../../../../../engine/graph/read-graph.ts'
import { classify, toFailure } from './node-failure.ts'

test('errors of PyTorch, CUDA and ComfyUI get their codes', () => {
  for (const [code, type, message] of [
    ['out_of_memory', 'torch.OutOfMemoryError', 'Allocation on device 0 would exceed allowed memory. (out of memory)'],
    ['out_of_memory', 'torch.cuda.OutOfMemoryError', 'CUDA out of memory. Tried to allocate 2.00 GiB'],
    [
      'out_of_memory',
      'RuntimeError',
      "[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.",
    ],
    ['out_of_memory', 'RuntimeError', 'CUDA error: out of memory'],
    ['out_of_memory', 'MemoryError', ''],
    ['cuda_fault', 'RuntimeError', 'CUDA error: an illegal memory access was encountered'],
    ['cuda_fault', 'torch.AcceleratorError', 'CUDA error: device-side assert triggered'],
    ['cuda_fault', 'RuntimeError', 'CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`'],
    ['cuda_fault', 'RuntimeError', 'cuDNN error: CUDNN_STATUS_INTERNAL_ERROR'],
    ['cuda_fault', 'RuntimeError', 'HIP error: unspecified launch failure'],
    ['missing_weights', 'FileNotFoundError', "Model in folder 'checkpoints' with filename 'sd.safetensors' not found."],
    ['missing_weights', 'FileNotFoundError', 'No such file or directory: /models/loras/a.safetensors'],
    ['node_execution_error', 'FileNotFoundError', 'No such file or directory: /input/a.png'],
    ['node_execution_error', 'ValueError', 'I remember that we were out of milk'],
    ['node_execution_error', 'RuntimeError', 'mat1 and mat2 shapes cannot be multiplied'],
  ] as const) {
    assert.equal(classify(type, message), code, `${type}: ${message}`)
  }
})

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
