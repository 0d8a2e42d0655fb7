/** Links between nodes, and what is validated at all: only what an output reaches. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { check, node, only } from './validate-rig.ts'

test('link types meet in one member, a wildcard, a match type or a list of choices', () => {
  const link = (source: string, input: string) =>
    check({ s: node(source), v: node('Values', { [input]: ['s', 0] }) }).nodeErrors.v?.errors[0]?.details ?? 'ok'
  assert.equal(link('Union', 'latent'), 'ok')
  assert.equal(link('Union', 'any'), 'ok')
  assert.equal(link('Union', 'int'), 'int, received_type(IMAGE, LATENT) mismatch input_type(INT)')
  assert.equal(link('Choices', 'combo'), 'ok')
  assert.equal(link('Choices', 'old'), "old, received_type(['x', 'y']) mismatch input_type(['x', 1, True])")
  assert.equal(link('ComfySwitchNode', 'latent'), 'ok')
})

test('a broken link is recorded on the node that holds it, as its consumer sees it', () => {
  const { nodeErrors } = check({ p: node('Pass', { image: ['99', 0] }), s: node('Sink', { image: ['p', 0] }) })
  assert.deepEqual(Object.keys(nodeErrors), ['p'])
  assert.deepEqual(only(nodeErrors.p.errors), {
    type: 'exception_during_inner_validation',
    message: 'Exception when validating inner node',
    details: "'99'",
    extra_info: {
      input_name: 'image',
      input_config: ['IMAGE', {}],
      exception_message: "'99'",
      exception_type: 'KeyError',
      traceback: [],
      linked_node: ['p', 0],
    },
  })
})

test('a broken link of an output is recorded on the output', () => {
  const { nodeErrors, error } = check({ s: node('Sink', { image: ['99', 0] }) })
  assert.equal(only(nodeErrors.s.errors).type, 'exception_during_validation')
  assert.equal(error?.details, "Exception when validating node: '99'")
})

test('slots are read as Python indexes', () => {
  const slot = (class_type: string, value: string) => {
    const text = `{"a":{"class_type":"${class_type}","inputs":{}},"s":{"class_type":"Sink","inputs":{"image":["a",${value}]}}}`
    const result = check(parseLosslessJson(text) as JsonObject)
    return result.nodeErrors.s?.errors[0]?.details ?? JSON.stringify(result.graph.get('s')?.inputs.image)
  }
  assert.equal(slot('Source', '0'), '["a",0]')
  assert.equal(slot('Source', '-2'), '["a",0]')
  assert.equal(slot('Source', 'false'), '["a",0]')
  assert.equal(slot('Source', '2'), 'tuple index out of range')
  assert.equal(slot('Source', '-3'), 'tuple index out of range')
  assert.equal(slot('Join', '1'), 'list index out of range')
  assert.equal(slot('Source', '0.0'), 'tuple indices must be integers or slices, not float')
  assert.equal(slot('Source', '"0"'), 'tuple indices must be integers or slices, not str')
  assert.equal(slot('Source', 'null'), 'tuple indices must be integers or slices, not NoneType')
  assert.equal(slot('Source', '99999999999999999999'), "cannot fit 'int' into an index-sized integer")
})

test('an id that is no string leads nowhere', () => {
  const linked = (id: JsonObject[string]) => only(check({ s: node('Sink', { image: [id, 0] }) }).nodeErrors.s.errors)
  assert.equal(linked(5).details, '5')
  assert.equal(linked(null).details, 'None')
  assert.equal(linked({}).details, "unhashable type: 'dict'")
  assert.equal(linked({}).extra_info.exception_type, 'TypeError')
})

test('lazy and optional links are validated too', () => {
  const { nodeErrors } = check({
    bad: node('ImageInvert'),
    j: node('Join', { a: ['bad', 0] }),
    s: node('Sink', { image: ['j', 0] }),
  })
  assert.equal(only(nodeErrors.bad.errors).type, 'required_input_missing')
  assert.deepEqual(nodeErrors.bad.dependent_outputs, ['s'])
})

test('nodes that no output reaches are never validated', () => {
  assert.deepEqual(
    check({ lost: node('ImageInvert'), a: node('Source'), s: node('Sink', { image: ['a', 0] }) }).nodeErrors,
    {},
  )
})

test('only the outputs that really depend on a faulty node are named', () => {
  const { nodeErrors, goodOutputs, ok } = check({
    bad: node('ImageInvert'),
    worse: node('ImageInvert'),
    p: node('Pass', { image: ['bad', 0] }),
    good: node('Source'),
    s1: node('Sink', { image: ['p', 0] }),
    s2: node('Sink', { image: ['bad', 0] }),
    s3: node('Sink', { image: ['worse', 0] }),
    s4: node('Sink', { image: ['good', 0] }),
  })
  assert.equal(ok, true)
  assert.deepEqual(goodOutputs, ['s4'])
  assert.deepEqual(nodeErrors.bad.dependent_outputs, ['s1', 's2'])
  assert.deepEqual(nodeErrors.worse.dependent_outputs, ['s3'])
  assert.equal('p' in nodeErrors, false)
})

test('a node of a cycle keeps its own errors after the cycle', () => {
  const { nodeErrors } = check({
    a: node('Join', { a: ['b', 0], b: ['b', 0, 1] }),
    b: node('Join', { a: ['a', 0] }),
    s: node('Sink', { image: ['a', 0] }),
  })
  assert.deepEqual(
    nodeErrors.a.errors.map(({ type }) => type),
    ['dependency_cycle', 'bad_linked_input'],
  )
  assert.equal(nodeErrors.b.errors[0].details, 'a (Join) -> b (Join) -> a (Join)')
  assert.deepEqual(nodeErrors.b.errors[0].extra_info, { node_id: 'b', cycle_nodes: ['a', 'b'] })
})

test('a node linked to itself is a cycle of one', () => {
  const { nodeErrors } = check({ a: node('Pass', { image: ['a', 0] }), s: node('Sink', { image: ['a', 0] }) })
  assert.equal(only(nodeErrors.a.errors).details, 'a (Pass) -> a (Pass)')
})

test('a node without a class, or of an unknown one, ends validation', () => {
  const nameless = check({ 7: { inputs: {} } }).error
  assert.equal(nameless?.type, 'missing_node_type')
  assert.match(nameless?.message ?? '', /^Node 'ID #7' has no class_type\./)
  assert.deepEqual(nameless?.extra_info, { node_id: '7', class_type: null, node_title: null })
  const unknown = check({ 7: node('Nope') }).error
  assert.deepEqual(unknown?.extra_info, { node_id: '7', class_type: 'Nope', node_title: 'Nope' })
})

test('targets select outputs; none, an empty list and strangers select nothing', () => {
  const workflow = { a: node('Source'), s: node('Sink', { image: ['a', 0] }) }
  assert.equal(check(workflow, { targets: [] }).error?.type, 'prompt_no_outputs')
  assert.equal(check(workflow, { targets: ['a', 'zzz'] }).error?.type, 'prompt_no_outputs')
  assert.deepEqual(check(workflow, { targets: ['s'] }).goodOutputs, ['s'])
  assert.equal(check({}).error?.type, 'prompt_no_outputs')
})
