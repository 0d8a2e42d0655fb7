/** Files that would keep the converter busy, or break it, without being large themselves. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject, JsonValue } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../../src/domain/errors.ts'
import { convertWorkflow } from '../../../../src/domain/workflows/convert/convert-workflow.ts'
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
