/** Files that would keep the converter busy, or break it, without being large themselves. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { convertWorkflow } from '../../../../src/domain/workflows/convert/convert-file.ts'
import { readEditorCatalog } from '../../../support/workflows/editor-pairs.ts'

const catalog = readEditorCatalog()

type Node = Record<string, JsonValue>
const node = (id: number, type: string, more: Node = {}): Node => ({ id, type, inputs: [], outputs: [], ...more })

function convert(saved: JsonObject): Record<string, JsonObject> {
  const { workflow } = convertWorkflow(saved, { catalog, now: new Date(2026, 1, 3), random: () => 0 })
  return workflow as Record<string, JsonObject>
}

function refusal(saved: JsonObject): string {
  try {
    convert(saved)
  } catch (error) {
    if (error instanceof ServiceError) return error.message
    throw error
  }
  return assert.fail('it was converted')
}

/** Looks like an object of a program that cannot be turned into text or a number. */
const STUBBORN = { toString: 1, valueOf: 1 }

const subgraphOf = (...nodes: Node[]): JsonObject => ({ id: 'sub', inputs: [], outputs: [], links: [], nodes })

describe('ids', () => {
  test('that are too high to count on from are ignored', () => {
    const definitions = { subgraphs: [subgraphOf(node(4, 'EmptyLatentImage'))] }
    const nodes = [node(4, 'sub')]
    for (const last of [9_007_199_254_740_991, 2 ** 31]) {
      assert.deepEqual(Object.keys(convert({ nodes, definitions, last_node_id: last })), ['4:1'])
    }
    const high = node(9_007_199_254_740_991, 'EmptyLatentImage')
    const subgraphs = [subgraphOf(high), { ...subgraphOf(high), id: 'other' }]
    const ids = Object.keys(convert({ nodes: [...nodes, node(5, 'other')], definitions: { subgraphs } }))
    assert.deepEqual(ids, ['4:9007199254740991', '5:1'])
  })

  test('of shown widgets may be anything', () => {
    const definitions = { subgraphs: [subgraphOf(node(4, 'EmptyLatentImage'))] }
    const properties = { proxyWidgets: [[[STUBBORN], 'width']] }
    assert.deepEqual(Object.keys(convert({ nodes: [node(4, 'sub', { properties })], definitions })), ['4:1'])
  })
})

describe('group nodes', () => {
  const shown = (count: number) => Array.from({ length: count }, (_, index) => node(index + 1, 'workflow>Many'))
  const group = (nodes: Node[]) => ({ extra: { groupNodes: { Many: { nodes, links: [] } } }, last_node_id: 20_000 })

  test('count together before they are expanded', () => {
    const many = Array.from({ length: 15_000 }, () => node(0, 'EmptyLatentImage'))
    assert.match(refusal({ nodes: shown(5_000), ...group(many) }), /more than 20000 nodes/)
  })

  test('count with the links of their slots', () => {
    const wide = node(0, 'EmptyLatentImage', { inputs: Array.from({ length: 1_000 }, () => ({ name: 'x' })) })
    assert.match(refusal({ nodes: shown(101), ...group([wide]) }), /or 100000 links/)
  })
})

describe('texts', () => {
  const primitive = (id: number, value: string) =>
    node(id, 'PrimitiveNode', {
      title: `P${id}`,
      outputs: [{ type: 'STRING', links: [id] }],
      properties: { 'Run widget replace on values': true },
      widgets_values: [value],
    })
  const target = (id: number, link: number) =>
    node(id, 'SaveImage', {
      title: `T${link}`,
      inputs: [{ name: 'filename_prefix', type: 'STRING', link, widget: { name: 'filename_prefix' } }],
    })

  test('that take in each other cannot grow without end', () => {
    const count = 30
    const ids = Array.from({ length: count }, (_, index) => index + 1)
    const doubled = (id: number) => `%T${id - 1}.filename_prefix%%T${id - 1}.filename_prefix%`
    const nodes = ids.flatMap((id) => [primitive(id, id === 1 ? 'xxxxxxxx' : doubled(id)), target(count + id, id)])
    const links = ids.map((id) => [id, id, 0, count + id, 0, 'STRING'])
    assert.match(refusal({ nodes, links }), /characters/)
    const few = convert({ nodes: nodes.slice(0, 6), links: links.slice(0, 3) })
    assert.deepEqual(few[count + 3]['inputs'], { filename_prefix: 'x'.repeat(32) })
  })

  test('of a subgraph count for every node that shows it', () => {
    const inner = node(1, 'CLIPTextEncode', { widgets_values: ['x'.repeat(100_000)] })
    const shown = (count: number) => ({
      nodes: Array.from({ length: count }, (_, index) => node(index + 2, 'sub')),
      definitions: { subgraphs: [subgraphOf(inner)] },
    })
    assert.equal(Object.keys(convert(shown(100))).length, 100)
    assert.match(refusal(shown(400)), /characters/)
  })

  test('and numbers are made of scalars alone', () => {
    const named = node(1, 'Unknown', { title: 'U', widgets_values_named: { a: STUBBORN, b: 5 } })
    const save = node(2, 'SaveImage', { widgets_values: ['%U.a% %U.b%'] })
    assert.deepEqual(convert({ nodes: [named, save] })['2']['inputs'], { filename_prefix: '%U.a% 5' })
    const number = node(1, 'PrimitiveNode', { outputs: [{ type: 'INT', links: [1] }], widgets_values: [STUBBORN] })
    const inputs = [{ name: 'width', type: 'INT', link: 1, widget: { name: 'width' } }]
    const latent = node(2, 'EmptyLatentImage', { inputs, widgets_values: [64, 64, 1] })
    const { 2: written } = convert({ nodes: [number, latent], links: [[1, 1, 0, 2, 0, 'INT']] })
    assert.deepEqual(written['inputs'], { width: 0, height: 64, batch_size: 1 })
  })
})

describe('links', () => {
  /** Reroute nodes in a row behind a source, each with an id from 2 on. */
  const chain = (length: number) => {
    const source = node(1, 'CheckpointLoaderSimple', { outputs: [{ type: 'MODEL', links: [1] }] })
    const reroute = (index: number) =>
      node(index + 2, 'Reroute', {
        inputs: [{ name: '', type: '*', link: index + 1 }],
        outputs: [{ type: '*', links: [index + 2] }],
      })
    return {
      nodes: [source, ...Array.from({ length }, (_, index) => reroute(index))],
      links: Array.from({ length }, (_, index) => [index + 1, index + 1, 0, index + 2, 0, '*']),
    }
  }

  test('may pass as many Reroute nodes as a file has', () => {
    const { nodes, links } = chain(8_000)
    const switched = node(9_001, 'ComfySwitchNode', {
      mode: 4,
      inputs: [
        { name: 'on_false', type: '*', link: 9_001 },
        { name: 'on_true', type: '*', link: null },
      ],
      outputs: [{ type: '*', links: [9_002] }],
    })
    const save = node(9_002, 'ModelSave', { inputs: [{ name: 'model', type: 'MODEL', link: 9_002 }] })
    const { 9002: written } = convert({
      nodes: [...nodes, switched, save],
      links: [...links, [9_001, 8_001, 0, 9_001, 0, '*'], [9_002, 9_001, 0, 9_002, 0, 'MODEL']],
    })
    assert.deepEqual((written['inputs'] as JsonObject)['model'], ['1', 0])
  })

  test('that share a way walk it once', () => {
    const { nodes, links } = chain(5_000)
    const ids = Array.from({ length: 5_000 }, (_, index) => 10_000 + index)
    const users = ids.map((id) => node(id, 'ModelSave', { inputs: [{ name: 'model', type: 'MODEL', link: id }] }))
    const written = convert({
      nodes: [...nodes, ...users],
      links: [...links, ...ids.map((id) => [id, 5_001, 0, id, 0, 'MODEL'])],
    })
    for (const id of ids) assert.deepEqual((written[id]['inputs'] as JsonObject)['model'], ['1', 0])
  })

  test('of a subgraph count for every node that shows it', () => {
    const inputs = Array.from({ length: 1_000 }, (_, index) => ({ name: `in ${index}`, type: '*', link: index }))
    const inner = node(1, 'Unknown', { inputs })
    const source = node(2, 'EmptyLatentImage')
    const links = inputs.map(({ link }) => [link, 2, 0, 1, link, '*'])
    const nodes = Array.from({ length: 2_000 }, (_, index) => node(index + 3, 'sub'))
    const definitions = { subgraphs: [{ ...subgraphOf(inner, source), links }] }
    assert.match(refusal({ nodes, definitions }), /steps along its links/)
  })
})

test('names that every object of the language has are names like others', () => {
  for (const name of ['constructor', '__proto__', 'toString']) {
    const { 1: written } = convert({ nodes: [node(1, name)] })
    assert.equal((written['_meta'] as JsonObject)['title'], name)
    const inner = node(4, 'CLIPTextEncode', {
      inputs: [{ name: 'text', type: 'STRING', link: 1, widget: { name: 'text' } }],
      widgets_values: ['inside'],
    })
    const shown = { ...subgraphOf(inner), inputs: [{ name, type: 'STRING', linkIds: [1] }], links: [[1, -10, 0, 4, 0]] }
    const host = node(1, 'sub', { inputs: [{ name, type: 'STRING', link: null }], widgets_values_named: {} })
    const { '1:4': encode } = convert({ nodes: [host], definitions: { subgraphs: [shown] } })
    assert.deepEqual(encode['inputs'], { text: 'inside' })
  }
})
