/** The editor's rules one by one, each in the smallest file that shows it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { NodeDefinition } from '../../../../engine/graph/node-catalog.ts'
import { catalogOf } from '../../../../engine/graph/object-info.ts'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { convertWorkflow } from '../../../../src/domain/workflows/convert/convert-workflow.ts'
import { readEditorCatalog } from '../../../support/workflows/editor-pairs.ts'

const catalog = readEditorCatalog()
const NOW = new Date(2026, 1, 3, 4, 5, 6)

type Node = Record<string, JsonValue>
type WireLink = [id: number, origin: number, originSlot: number, target: number, targetSlot: number]

const node = (id: number, type: string, more: Node = {}): Node => ({
  id,
  type,
  mode: 0,
  inputs: [],
  outputs: [],
  properties: {},
  ...more,
})
const input = (name: string, type: string, link: number | null, hasWidget = false): JsonValue => ({
  name,
  type,
  link,
  ...(hasWidget && { widget: { name } }),
})
const output = (type: string, ...links: number[]): JsonValue => ({ name: type, type, links })
const file = (nodes: Node[], links: WireLink[] = [], more: JsonObject = {}): JsonObject => ({
  nodes,
  links: links.map((link) => [...link, '*']),
  version: 0.4,
  ...more,
})

function convert(saved: JsonObject, random = () => 0) {
  return convertWorkflow(saved, { catalog, now: NOW, random })
}

function inputsOf(saved: JsonObject): Record<string, JsonObject> {
  const { workflow } = convert(saved)
  return Object.fromEntries(
    Object.entries(workflow).map(([id, each]) => [id, (each as JsonObject)['inputs'] as JsonObject]),
  )
}

function refusal(saved: JsonObject): { message: string; reason: string | undefined } {
  try {
    convert(saved)
  } catch (error) {
    assert.ok(error instanceof ServiceError)
    const [first] = Object.values(error.details?.['node_errors'] as Record<string, { reason: string }[]>)
    return { message: error.message, reason: first?.[0].reason }
  }
  return assert.fail('it was converted')
}

const checkpoint = (id: number, ...links: number[]) =>
  node(id, 'CheckpointLoaderSimple', {
    outputs: [output('MODEL', ...links), output('CLIP'), output('VAE')],
    widgets_values: ['a.safetensors'],
  })

describe('links', () => {
  test('pass Reroute nodes and bypassed nodes of a matching type, and end at muted ones', () => {
    const nodes = (mode: number) => [
      checkpoint(1, 1),
      node(2, 'Reroute', { inputs: [input('', '*', 1)], outputs: [output('MODEL', 2)] }),
      node(3, 'LoraLoader', {
        mode,
        inputs: [input('model', 'MODEL', 2), input('clip', 'CLIP', null)],
        outputs: [output('MODEL', 3), output('CLIP')],
        widgets_values: ['x.safetensors', 1, 1],
      }),
      node(4, 'ModelSave', { inputs: [input('model', 'MODEL', 3)], widgets_values: ['x'] }),
    ]
    const links: WireLink[] = [
      [1, 1, 0, 2, 0],
      [2, 2, 0, 3, 0],
      [3, 3, 0, 4, 0],
    ]
    assert.deepEqual(inputsOf(file(nodes(0), links))['4'], { filename_prefix: 'x', model: ['3', 0] })
    assert.deepEqual(inputsOf(file(nodes(4), links))['4'], { filename_prefix: 'x', model: ['1', 0] })
    assert.deepEqual(inputsOf(file(nodes(2), links))['4'], { filename_prefix: 'x' })
  })

  test('may be objects, in files of version 1 and anywhere else', () => {
    const save = node(2, 'ModelSave', { inputs: [input('model', 'MODEL', 9)], widgets_values: ['x'] })
    const link = { id: 9, origin_id: 1, origin_slot: 0, target_id: 2, target_slot: 0, type: 'MODEL' }
    for (const version of [1, 0.4]) {
      const saved = { nodes: [checkpoint(1, 9), save], links: [link], version, floatingLinks: [], reroutes: [] }
      assert.deepEqual(inputsOf(saved)['2'], { filename_prefix: 'x', model: ['1', 0] })
    }
  })

  test('that lead nowhere or in a circle are refused at the node', () => {
    const save = node(2, 'ModelSave', { inputs: [input('model', 'MODEL', 9)], widgets_values: ['x'] })
    assert.equal(refusal(file([save])).reason, 'broken_link')
    assert.match(refusal(file([save], [[9, 7, 0, 2, 0]])).message, /input model of node 2/)
    const loop = [
      node(1, 'Reroute', { inputs: [input('', '*', 1)], outputs: [output('*', 2)] }),
      node(2, 'Reroute', { inputs: [input('', '*', 2)], outputs: [output('*', 1, 3)] }),
      node(3, 'PreviewAny', { inputs: [input('source', '*', 3)] }),
    ]
    assert.equal(
      refusal(
        file(loop, [
          [1, 2, 0, 1, 0],
          [2, 1, 0, 2, 0],
          [3, 2, 0, 3, 0],
        ]),
      ).reason,
      'endless_link',
    )
  })
})

describe('values', () => {
  test('follow the widgets of the class, with those that belong to the editor alone', () => {
    const values = [5, 'randomize', 20, 8, 'euler', 'simple', 1]
    const { 1: sampler } = inputsOf(file([node(1, 'KSampler', { widgets_values: values })]))
    assert.deepEqual(sampler, { seed: 5, steps: 20, cfg: 8, sampler_name: 'euler', scheduler: 'simple', denoise: 1 })
  })

  test('that an old editor kept for inputs which only take links are dropped', () => {
    const definition = catalog.find('EmptyLatentImage') as NodeDefinition
    const required = { a: ['STRING', { forceInput: true }], b: ['STRING', {}] } as const
    const own = catalogOf({ Forced: { ...definition, name: 'Forced', input: { required }, input_order: {} } })
    const forced = (...values: string[]) =>
      convertWorkflow(file([node(1, 'Forced', { widgets_values: values })]), {
        catalog: own,
        now: NOW,
        random: () => 0,
      })
    for (const values of [['old', 'kept'], ['kept']]) {
      assert.deepEqual((forced(...values).workflow['1'] as JsonObject)['inputs'], { b: 'kept' })
    }
  })

  test('come by name where the file has no list', () => {
    const named = { widgets_values_named: { width: 8, height: 9, batch_size: 2 } }
    assert.deepEqual(inputsOf(file([node(1, 'EmptyLatentImage', named)]))['1'], { width: 8, height: 9, batch_size: 2 })
    assert.deepEqual(inputsOf(file([node(1, 'EmptyLatentImage')]))['1'], { width: 512, height: 512, batch_size: 1 })
  })

  test('of a dynamic combo bring the inputs of what is chosen, and drop links to others', () => {
    const resize = (choice: string, values: JsonValue[]) =>
      node(2, 'ResizeImageMaskNode', {
        inputs: [
          input('input', 'IMAGE', null),
          input('resize_type', 'COMBO', null, true),
          input('resize_type.multiplier', 'FLOAT', 1, true),
        ],
        widgets_values: [choice, ...values],
      })
    const number = node(1, 'PrimitiveFloat', { outputs: [output('FLOAT', 1)], widgets_values: [2] })
    const links: WireLink[] = [[1, 1, 0, 2, 2]]
    const scaled = inputsOf(file([number, resize('scale by multiplier', [1, 'area'])], links))['2']
    assert.deepEqual(scaled['resize_type.multiplier'], ['1', 0])
    const sized = inputsOf(file([number, resize('scale dimensions', [640, 480, 'center', 'area'])], links))['2']
    assert.deepEqual([sized['resize_type.width'], sized['resize_type.height']], [640, 480])
    assert.equal(sized['resize_type.multiplier'], undefined)
  })

  test('of a Primitive node go into the widgets that it is connected to, within their bounds', () => {
    const primitive = node(1, 'PrimitiveNode', { outputs: [output('INT', 1)], widgets_values: [100_000, 'fixed'] })
    const latent = node(2, 'EmptyLatentImage', {
      inputs: [input('width', 'INT', 1, true)],
      widgets_values: [64, 64, 1],
    })
    assert.equal(inputsOf(file([primitive, latent], [[1, 1, 0, 2, 0]]))['2']['width'], 16384)
  })

  test('that are lists are wrapped, because a list is a link', () => {
    const { 1: compare } = inputsOf(file([node(1, 'ImageCompare')]))
    assert.deepEqual(compare, { compare_view: { __value__: ['', ''] } })
  })

  test('keep whole numbers whole, and every digit of large ones', () => {
    const saved = file([node(1, 'RandomNoise', { widgets_values: [18446744073709551615n, 'fixed'] })])
    assert.equal(inputsOf(saved)['1']['noise_seed'], 18446744073709551615n)
  })
})

describe('texts', () => {
  const save = (prefix: string) => node(2, 'SaveImage', { widgets_values: [prefix] })

  test('in names of files get dates and values of other nodes', () => {
    const latent = node(1, 'EmptyLatentImage', { title: 'Size', widgets_values: [8, 9, 1] })
    const name = (prefix: string) => inputsOf(file([latent, save(prefix)]))['2']['filename_prefix']
    assert.equal(name('%date:yyyy-MM-dd hhmmss%_%date:d.M.yy%'), '2026-02-03 040506_3')
    assert.equal(name('%EmptyLatentImage.width%x%Size.height%'), '8x9')
    assert.equal(name('%Nobody.width% %width% 100%'), '%Nobody.width% %width% 100%')
  })

  test('with alternatives get one of them, and lose comments', () => {
    const encode = (text: string) => file([node(1, 'CLIPTextEncode', { widgets_values: [text] })])
    const { workflow, warnings } = convert(
      encode('a {cat|{big|small} dog} // note\n\\{kept\\} {one} /* gone */'),
      () => 0.99,
    )
    assert.equal(((workflow['1'] as JsonObject)['inputs'] as JsonObject)['text'], 'a small dog \n{kept} one ')
    assert.match(warnings[0].message, /at random/)
    assert.deepEqual(convert(encode('{plain} text')).warnings, [])
  })
})

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
