import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { fillGraph } from '../../../src/domain/endpoints/fill-graph.ts'
import { ServiceError } from '../../../src/domain/errors.ts'
import { file, input, node } from '../workflows/convert/convert-rig.ts'
import { examplesOf, namesOf, proposed } from './propose-rig.ts'

const many = <Item>(count: number, make: (index: number) => Item): Item[] =>
  Array.from({ length: count }, (_, index) => make(index))

test('App mode with 10,000 inputs is bounded, and says so', async () => {
  const nodes = many(10_000, (id) => node(id, 'PrimitiveInt', { widgets_values: [id, 'fixed'] }))
  const linearData = { inputs: many(10_000, (id) => [id, 'value']), outputs: many(10_000, String) }
  const { inputs, candidates, warnings } = await proposed(file(nodes, [], { extra: { linearData } }))
  assert.equal(inputs.length, 200)
  assert.equal(candidates.length, 500)
  assert.ok(warnings.length <= 200)
  assert.ok(warnings.some(({ message }) => message.startsWith('only 200 inputs')))
})

test('10,000 values of one name each get another, within the bounds', async () => {
  const graph = Object.fromEntries(
    many(10_000, (id) => [String(id), { class_type: 'CLIPTextEncode', inputs: { text: `t${id}` } }]),
  )
  const { inputs, candidates } = await proposed(graph)
  const names = namesOf([...inputs, ...candidates])
  assert.equal(names.length, 700)
  assert.equal(new Set(names).size, 700)
})

test('subgraphs that contain each other are refused', async () => {
  const sub = (id: string, inner: string) => ({
    id,
    name: id,
    nodes: [node(1, inner)],
    links: [],
    inputs: [],
    outputs: [],
  })
  const circular = file([node(1, 'a')], [], {
    definitions: { subgraphs: [sub('a', 'b'), sub('b', 'a')] },
    extra: {
      linearData: {
        inputs: [
          ['a:1', 'x'],
          ['1:1:1:1', 'x'],
        ],
      },
    },
  })
  await assert.rejects(
    proposed(circular),
    (error) => error instanceof ServiceError && error.refusal === 'invalid_workflow',
  )
})

test('a node with 80,000 inputs that come from one external node', async () => {
  const inputs = Object.fromEntries(many(80_000, (index) => [`i${index}`, ['2', 0]]))
  const graph: JsonObject = {
    '1': { class_type: 'CLIPTextEncode', inputs },
    '2': { class_type: 'ComfyUIDeployExternalText', inputs: { input_id: 'x', default_value: 'y' } },
  }
  const proposal = await proposed(graph)
  assert.equal(proposal.inputs[0].places.length, 80_000)
  const filled = fillGraph(proposal.graph, proposal.inputs, examplesOf(proposal.inputs))
  assert.equal(((filled['1'] as JsonObject)['inputs'] as JsonObject)['i79999'], 'y')
})

test('external nodes in a circle, and without any names', async () => {
  const external = (from: string) => ({ class_type: 'ComfyUIDeployExternalText', inputs: { default_value: [from, 0] } })
  const { inputs } = await proposed({
    '1': external('2'),
    '2': external('1'),
    '3': { class_type: 'CLIPTextEncode', inputs: { text: ['1', 0] } },
  })
  assert.deepEqual(
    inputs.map(({ name, isRequired }) => [name, isRequired]),
    [['setting', true]],
  )
})

test('names and titles of a megabyte, of control characters, and of the words that objects have', async () => {
  const titles = [
    'x'.repeat(1_000_000),
    '\u0000\u0001',
    '__proto__',
    'constructor',
    '$',
    '$$$',
    '('.repeat(5_000),
    '\ud800',
    '$toString',
  ]
  const nodes = titles.map((title, id) => node(id, 'PrimitiveString', { title, widgets_values: ['v'] }))
  const { inputs } = await proposed(file(nodes))
  assert.equal(inputs.length, titles.length)
  for (const { name, title } of inputs) {
    assert.match(name, /^[a-z][a-z0-9_]{0,63}$/)
    assert.ok(title.length <= 200)
  }
})

test('what is no workflow is refused in words', async () => {
  const wrong: JsonValue[] = [
    null,
    7,
    'text',
    [],
    {},
    { nodes: [7] },
    { nodes: [node(1, 'KSampler', { inputs: [7] })] },
    { a: { class_type: 7 } },
  ]
  for (const content of wrong) {
    await assert.rejects(proposed(content), (error) => error instanceof ServiceError, JSON.stringify(content))
  }
})

test('labels and definitions of any shape are passed over', async () => {
  const odd: JsonValue[] = [null, 7, 'x', {}, [], { name: 7, label: [] }, { name: 'text', label: ' ' }]
  const saved = file(
    [node(1, 'CLIPTextEncode', { inputs: [input('text', 'STRING', null, true)], widgets_values: ['hi'] })],
    [],
    {
      extra: { linearData: { inputs: odd, outputs: odd } },
      id: {},
    },
  )
  assert.deepEqual(namesOf((await proposed(saved)).inputs), ['prompt'])
})
