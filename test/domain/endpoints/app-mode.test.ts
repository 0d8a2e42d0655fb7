import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { file, input, node, output } from '../workflows/convert/convert-rig.ts'
import { kindsOf, namesOf, picture, placesOf, proposed } from './propose-rig.ts'

/** A picture, a scaler in a subgraph whose width is shown, and a result. */
const workflow = (linearData: JsonValue): JsonObject =>
  file(
    [
      picture(1, 'a.png', { outputs: [output('IMAGE', 1), output('MASK')] }),
      node(2, 'sub', {
        inputs: [input('image', 'IMAGE', 1), input('width_1', 'INT', null, true)],
        outputs: [output('IMAGE', 2)],
        widgets_values: [640],
      }),
      node(3, 'SaveImage', { inputs: [input('images', 'IMAGE', 2)], widgets_values: ['out'] }),
      node(4, 'PreviewImage', { inputs: [input('images', 'IMAGE', null)] }),
      node(5, 'Note', { widgets_values: ['for people'] }),
    ],
    [
      [1, 1, 0, 2, 0],
      [2, 2, 0, 3, 0],
    ],
    {
      id: 'root-graph',
      extra: { linearData },
      definitions: {
        subgraphs: [
          {
            id: 'sub',
            name: 'Scale',
            nodes: [
              node(10, 'ImageScale', {
                inputs: [input('image', 'IMAGE', 1), input('width', 'INT', 2, true)],
                outputs: [output('IMAGE', 3)],
                widgets_values: ['lanczos', 512, 512, 'disabled'],
              }),
            ],
            links: [
              { id: 1, origin_id: -10, origin_slot: 0, target_id: 10, target_slot: 0, type: 'IMAGE' },
              { id: 2, origin_id: -10, origin_slot: 1, target_id: 10, target_slot: 1, type: 'INT' },
              { id: 3, origin_id: 10, origin_slot: 0, target_id: -20, target_slot: 0, type: 'IMAGE' },
            ],
            inputs: [
              { id: 'a', name: 'image', type: 'IMAGE', linkIds: [1] },
              { id: 'b', name: 'width_1', type: 'INT', linkIds: [2] },
            ],
            outputs: [{ id: 'c', name: 'IMAGE', type: 'IMAGE', linkIds: [3] }],
          },
        ],
      },
    },
  )

const GENERATIONS: Readonly<Record<string, JsonValue[]>> = {
  'graph, node and name': [
    ['root-graph:2:width_1', 'width_1'],
    ['root-graph:1:image', 'image', { height: 40 }],
  ],
  'the place inside of a subgraph': [
    ['sub:10', 'width'],
    [1, 'image'],
  ],
  'the nodes on the way to it': [
    ['2:10', 'width'],
    ['1', 'image'],
  ],
  'the bare id of an inner node': [
    [10, 'width'],
    ['1', 'image'],
  ],
  'the bare id of the node that shows it': [
    ['2', 'width_1'],
    [1, 'image'],
  ],
}

for (const [way, inputs] of Object.entries(GENERATIONS)) {
  test(`App mode names a value by ${way}: exactly these inputs, in its order`, async () => {
    const proposal = await proposed(workflow({ inputs, outputs: ['3'] }))
    assert.deepEqual(namesOf(proposal.inputs), ['width', 'image'])
    assert.deepEqual(proposal.inputs.flatMap(placesOf), ['2:10.width', '1.image'])
    assert.deepEqual(kindsOf(proposal.outputs), ['image: image'])
    assert.deepEqual(proposal.warnings, [])
  })
}

test('names in an id are encoded', async () => {
  const { inputs } = await proposed(workflow({ inputs: [['root-graph:2:width%5F1', 'width_1']] }))
  assert.deepEqual(inputs.flatMap(placesOf), ['2:10.width'])
})

test('an input that is gone is left out with a warning, and so is an output', async () => {
  const data = {
    inputs: [
      ['1', 'image'],
      ['77', 'text'],
      ['5', 'text'],
      ['root-graph:9:x', 'x'],
    ],
    outputs: ['99', 4],
  }
  const { inputs, outputs, warnings } = await proposed(workflow(data))
  assert.deepEqual(namesOf(inputs), ['image'])
  assert.deepEqual(
    outputs.map(({ nodeId }) => nodeId),
    ['4'],
  )
  assert.deepEqual(
    warnings.map(({ nodeId }) => nodeId),
    ['77', '5', 'root-graph:9:x', '99'],
  )
})

test('a bare id that could mean several values is left out', async () => {
  const saved = workflow({
    inputs: [
      [10, 'width'],
      [1, 'image'],
    ],
  })
  const nodes = saved['nodes'] as JsonObject[]
  nodes.push(node(6, 'sub', { inputs: [input('width_1', 'INT', null, true)], widgets_values: [320] }))
  const { inputs, warnings } = await proposed(saved)
  assert.deepEqual(namesOf(inputs), ['image'])
  assert.equal(warnings[0].nodeId, '10')
})

test('data that makes no sense is no App mode at all', async () => {
  const usual = namesOf((await proposed(workflow({}))).inputs)
  assert.deepEqual(usual, ['image', 'width'])
  const garbage: JsonValue[] = [
    null,
    'x',
    { inputs: 'all', outputs: 7 },
    {
      inputs: [null, [], [1], [{}, 'image'], ['x'.repeat(5000), 'y'], ['%E0%A4%A:%:%', '%'], [':', ':'], ['::', 'a']],
      outputs: [null, {}, [[]]],
    },
  ]
  for (const data of garbage) assert.deepEqual(namesOf((await proposed(workflow(data))).inputs), usual)
})

test('a Primitive node inside of a subgraph that an old editor showed outside is found by its bare id', async () => {
  const saved = workflow({ inputs: [[11, 'value']] })
  const [, host] = saved['nodes'] as JsonObject[]
  const [{ nodes, links }] = (saved['definitions'] as { subgraphs: { nodes: JsonObject[]; links: JsonObject[] }[] })
    .subgraphs
  nodes.push(node(11, 'PrimitiveNode', { title: 'Tall', outputs: [output('INT', 9)], widgets_values: [300, 'fixed'] }))
  nodes[0]['inputs'] = [input('image', 'IMAGE', 1), input('width', 'INT', 2, true), input('height', 'INT', 9, true)]
  links.push({ id: 9, origin_id: 11, origin_slot: 0, target_id: 10, target_slot: 2, type: 'INT' })
  host['properties'] = {
    proxyWidgets: [
      ['10', 'width'],
      ['11', 'value'],
    ],
  }
  host['widgets_values'] = [640, 200]
  const { inputs } = await proposed(saved)
  assert.deepEqual(
    inputs.map(({ name, example }) => [name, example]),
    [['tall', 200]],
  )
  assert.deepEqual(inputs.flatMap(placesOf), ['2:10.height'])
})
