/** Nodes that stand for others: subgraphs, group nodes, and classes that no engine has. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { convert, file, input, inputsOf, type Node, node, output, refusal } from './convert-rig.ts'

describe('subgraphs', () => {
  const inner = (id: number, ...more: Node[]) => ({
    id: 'sub',
    name: 'Sub',
    inputs: [{ name: 'text', type: 'STRING', linkIds: [1] }],
    outputs: [{ name: 'out', type: 'CONDITIONING', linkIds: [2] }],
    nodes: [
      node(id, 'CLIPTextEncode', {
        inputs: [input('clip', 'CLIP', null), input('text', 'STRING', 1, true)],
        outputs: [output('CONDITIONING', 2)],
        widgets_values: ['inside'],
      }),
      ...more,
    ],
    links: [
      { id: 1, origin_id: -10, origin_slot: 0, target_id: id, target_slot: 1, type: 'STRING' },
      { id: 2, origin_id: id, origin_slot: 0, target_id: -20, target_slot: 0, type: 'CONDITIONING' },
    ],
  })
  const host = (id: number, more: Node = {}) =>
    node(id, 'sub', { inputs: [input('text', 'STRING', null, true)], outputs: [output('CONDITIONING')], ...more })

  test('are flattened, with the values that the node outside gives', () => {
    const definitions = { subgraphs: [inner(4)] }
    const saved = file([host(8, { widgets_values: ['one'] }), host(9, { widgets_values: ['two'] }), host(10)], [], {
      definitions,
    })
    assert.deepEqual(inputsOf(saved), { '8:4': { text: 'one' }, '9:4': { text: 'two' }, '10:4': { text: 'inside' } })
  })

  test('of older editors name the widgets that they show', () => {
    const latent = node(5, 'EmptyLatentImage', {
      inputs: ['width', 'height', 'batch_size'].map((name) => input(name, 'INT', null, true)),
      widgets_values: [64, 64, 1],
    })
    const properties = {
      proxyWidgets: [
        ['5', 'height'],
        ['-1', 'text'],
        ['5', 'width'],
        ['99', 'gone'],
      ],
    }
    const saved = file([host(8, { properties, widgets_values: [128, 'shown', 256, 1] })], [], {
      definitions: { subgraphs: [inner(4, latent)] },
    })
    assert.deepEqual(inputsOf(saved), { '8:4': { text: 'shown' }, '8:5': { width: 256, height: 128, batch_size: 1 } })
  })

  test('may lie in each other, and get ids that no other node has', () => {
    const outer = {
      ...inner(4),
      id: 'outer',
      name: 'Outer',
      inputs: [],
      outputs: [],
      nodes: [host(4, { widgets_values: ['deep'] })],
      links: [],
    }
    const saved = file([node(4, 'outer')], [], { definitions: { subgraphs: [outer, inner(4)] }, last_node_id: 20 })
    assert.deepEqual(inputsOf(saved), { '4:21:22': { text: 'deep' } })
  })

  test('that contain themselves are refused', () => {
    const definitions = { subgraphs: [inner(4, host(5))] }
    assert.match(refusal(file([host(8)], [], { definitions })).message, /"Sub" contains itself/)
  })

  test('that multiply beyond bounds are refused', () => {
    const levels = Array.from({ length: 20 }, (_, level) => ({
      id: `level ${level}`,
      name: `level ${level}`,
      inputs: [],
      outputs: [],
      links: [],
      nodes: [1, 2, 3, 4].map((at) => node(level * 10 + at, level === 19 ? 'EmptyLatentImage' : `level ${level + 1}`)),
    }))
    const saved = file([node(1, 'level 0')], [], { definitions: { subgraphs: levels } })
    assert.match(refusal(saved).message, /more than 20000 nodes/)
  })
})

describe('group nodes', () => {
  test('become what they group, with the values of the outer node', () => {
    const encode = node(0, 'CLIPTextEncode', {
      inputs: [input('clip', 'CLIP', null)],
      outputs: [output('CONDITIONING')],
      widgets_values: ['in'],
    })
    const zero = node(1, 'ConditioningZeroOut', {
      inputs: [input('conditioning', 'CONDITIONING', null)],
      outputs: [output('CONDITIONING')],
    })
    const groupNodes = { Pair: { nodes: [encode, zero], links: [[0, 0, 1, 0, 7, 'CONDITIONING']], external: [] } }
    const nodes = [
      node(3, 'CLIPLoader', { outputs: [output('CLIP', 1)], widgets_values: ['c.safetensors', 'sd3', 'default'] }),
      node(4, 'workflow>Pair', {
        inputs: [input('clip', 'CLIP', 1)],
        outputs: [output('CONDITIONING', 2)],
        widgets_values: ['out'],
      }),
      node(5, 'PreviewAny', { inputs: [input('source', '*', 2)] }),
    ]
    const saved = file(
      nodes,
      [
        [1, 3, 0, 4, 0],
        [2, 4, 0, 5, 0],
      ],
      { extra: { groupNodes }, last_node_id: 5 },
    )
    const { 3: _loader, ...others } = inputsOf(saved)
    assert.deepEqual(others, {
      '8:6': { text: 'out', clip: ['3', 0] },
      '8:7': { conditioning: ['8:6', 0] },
      '5': { source: ['8:7', 0] },
    })
  })
})

describe('classes that no engine has', () => {
  const foreign = (more: Node) => file([node(1, 'Foreign', { properties: { aux_id: 'someone/pack' }, ...more })])

  test('are refused when nobody knows which value is which', () => {
    const { message, reason } = refusal(foreign({ widgets_values: [1, 2] }))
    assert.equal(reason, 'unknown_class')
    assert.match(message, /"Foreign", from someone\/pack/)
  })

  test('pass with a warning when the file names their values, and unnoticed when they are off', () => {
    const { workflow, warnings } = convert(foreign({ widgets_values_named: { a: 1 }, widgets_values: [1] }))
    assert.deepEqual((workflow['1'] as JsonObject)['inputs'], { a: 1 })
    assert.equal(warnings.length, 1)
    assert.deepEqual(convert(foreign({ mode: 4, widgets_values: [1] })), { workflow: {}, warnings: [] })
  })

  test('that only the page can resolve are refused with their pack', () => {
    const { message, reason } = refusal(file([node(1, 'SetNode', { widgets_values: ['x'] })]))
    assert.equal(reason, 'needs_browser_extension')
    assert.match(message, /SetNode, from comfyui-kjnodes/)
    assert.deepEqual(convert(file([node(1, 'Label (rgthree)')])), { workflow: {}, warnings: [] })
  })
})
