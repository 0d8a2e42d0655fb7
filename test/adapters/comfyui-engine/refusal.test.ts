import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type JsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { hasNodeErrors, toRefusal } from '../../../src/adapters/engines/comfyui/run/graph-refusal.ts'

const bounds = { maxMessageBytes: 500, redact: (text: string) => text }
const recorded = parseLosslessJson(
  readFileSync(new URL('../../fixtures/validation.json', import.meta.url), 'utf8'),
) as Record<string, JsonObject>

interface Exchange {
  readonly response: { readonly status: number; readonly body: JsonObject }
}

test('every recorded refusal has a code, a message and, where there is one, its node', () => {
  const refused = Object.entries(recorded as unknown as Record<string, Exchange>).filter(
    ([, { response }]) => response?.status === 400,
  )
  assert.ok(refused.length > 5)
  for (const [name, { response }] of refused) {
    const { failure } = toRefusal(response.body, bounds)
    assert.ok(['invalid_workflow', 'missing_node_class', 'missing_weights'].includes(failure.code), name)
    assert.match(failure.message, /^the engine refused the workflow: ./)
    const [first] = Object.keys((response.body.node_errors ?? {}) as JsonObject)
    if (first !== undefined) assert.equal(failure.nodeId, first, name)
  }
})

const nodeErrors = (type: string, received: string) => ({
  error: { type: 'prompt_outputs_failed_validation', message: '', details: '', extra_info: {} },
  node_errors: {
    '4': {
      class_type: 'CheckpointLoaderSimple',
      dependent_outputs: ['9'],
      errors: [{ type, message: 'Value not in list', details: 'ckpt_name', extra_info: { received_value: received } }],
    },
  },
})

test('a choice that is not installed is missing weights only when it names weights', () => {
  assert.equal(toRefusal(nodeErrors('value_not_in_list', 'a.safetensors'), bounds).failure.code, 'missing_weights')
  assert.equal(toRefusal(nodeErrors('value_not_in_list', 'bilinear'), bounds).failure.code, 'invalid_workflow')
})

test('only a validator of the node itself speaks about files', () => {
  assert.equal(toRefusal(nodeErrors('custom_validation_failed', 'x.png'), bounds).isAboutFiles, true)
  assert.equal(toRefusal(nodeErrors('value_not_in_list', 'x.png'), bounds).isAboutFiles, false)
})

test('a body without a reason is still a refusal', () => {
  for (const body of [null, 'no', [], {}]) {
    assert.equal(toRefusal(body, bounds).failure.code, 'invalid_workflow')
    assert.equal(hasNodeErrors(body), false)
  }
})
