/** A file of twice the size is twice the work: counted along its links, not timed. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { JsonObject } from '../../../../lib/json/lossless-json.ts'
import { finishNow } from '../../../../lib/waiting/turns.ts'
import { convertWorkflowSteps } from '../../../../src/domain/workflows/convert/convert-file.ts'
import { loadWorkflowSteps } from '../../../../src/domain/workflows/convert/editor/load-workflow.ts'
import { createResolveInput } from '../../../../src/domain/workflows/convert/prompt/resolve-link.ts'
import { readSavedSteps } from '../../../../src/domain/workflows/convert/saved/read-saved.ts'
import { catalog, checkpoint, file, input, NOW, type Node, node, output, type WireLink } from './convert-rig.ts'

type Shape = (size: number) => JsonObject
type Piece = (id: number, link: number) => Node

const passing = (type: string, mode: number, slot = 'MODEL'): Piece => {
  return (id, link) => node(id, type, { mode, inputs: [input('model', slot, link)], outputs: [output(slot, link + 1)] })
}
const reroute = passing('Reroute', 0, '*')
const bypassed = passing('LoraLoaderModelOnly', 4)

/** As many users behind the last node as there are nodes, each asking for a type of its own. */
function chain(piece: Piece, size: number): JsonObject {
  const nodes = [checkpoint(1, 1), ...Array.from({ length: size }, (_, index) => piece(index + 2, index + 1))]
  const links = Array.from({ length: size }, (_, index): WireLink => [index + 1, index + 1, 0, index + 2, 0])
  for (let id = 100_000; id < 100_000 + size; id++) {
    nodes.push(node(id, 'Unknown', { inputs: [input('model', `MODEL,${id}`, id)] }))
    links.push([id, size + 1, 0, id, 0])
  }
  return file(nodes, links)
}

/** Subgraphs that lie in each other; the innermost has one bypassed node. */
function nested(depth: number): JsonObject {
  const subgraphs = Array.from({ length: depth }, (_, level) => ({
    id: `s${level}`,
    inputs: [{ name: 'model', type: 'MODEL', linkIds: [1] }],
    outputs: [{ name: 'MODEL', type: 'MODEL', linkIds: [2] }],
    nodes: [level === depth - 1 ? bypassed(5, 1) : passing(`s${level + 1}`, 0)(5, 1)],
    links: [
      [1, -10, 0, 5, 0, 'MODEL'],
      [2, 5, 0, -20, 0, 'MODEL'],
    ],
  }))
  return { subgraphs }
}

const primitives: Shape = (size) => {
  const ids = Array.from({ length: size }, (_, index) => index + 1)
  const pairs = ids.flatMap((id) => [
    node(2 * id, 'PrimitiveNode', { outputs: [output('INT', id)], widgets_values: [64, 'fixed'] }),
    node(2 * id + 1, 'EmptyLatentImage', { inputs: [input('width', 'INT', id, true)], widgets_values: [64, 64, 1] }),
  ])
  return file(
    pairs,
    ids.map((id): WireLink => [id, 2 * id, 0, 2 * id + 1, 0]),
  )
}

const SHAPES: Readonly<Record<string, Shape>> = {
  'bypassed nodes': (size) => chain(bypassed, size),
  'bypassed nodes of an unknown class': (size) => chain(passing('Unknown', 4), size),
  'muted nodes': (size) => chain(passing('LoraLoaderModelOnly', 2), size),
  'Reroute nodes': (size) => chain(reroute, size),
  'bypassed Reroute nodes': (size) => chain(passing('Reroute', 4, '*'), size),
  'bypassed and Reroute nodes in turn': (size) =>
    chain((id, link) => (id % 2 === 0 ? bypassed : reroute)(id, link), size),
  'nodes that show nested subgraphs': (size) => ({ ...chain(passing('s0', 0), size), definitions: nested(20) }),
  'Primitive nodes': primitives,
}

function countSteps(saved: JsonObject): number {
  const { root } = finishNow(loadWorkflowSteps(finishNow(readSavedSteps(saved)), catalog))
  let steps = 0
  const resolve = createResolveInput((amount) => {
    steps += amount
  })
  for (const each of root.nodes.values())
    for (const slot of each.inputs) resolve({ node: each, graph: root, host: null, id: each.id }, slot)
  return steps
}

describe('twice as long a chain is twice the work', () => {
  for (const [what, shape] of Object.entries(SHAPES)) {
    test(`of ${what}`, () => {
      const [once, twice] = [countSteps(shape(400)), countSteps(shape(800))]
      assert.ok(twice <= 2.2 * once, `${once} and ${twice} steps`)
    })
  }
})

test('a large file is read, loaded and written in many steps, none of which deals with all of it', () => {
  const size = 500
  for (const shape of Object.values(SHAPES)) {
    const work = convertWorkflowSteps(shape(size), { catalog, now: NOW, random: () => 0 })
    let steps = 1
    while (work.next().done !== true) steps++
    assert.ok(steps >= 6 * size, `${steps} steps`)
  }
})
