import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readWorkflowText, shapeOf } from './workflow-text.ts'

const shape = (content: unknown) => shapeOf(readWorkflowText(JSON.stringify(content)))

test('one shape: other values, places and order; another shape: other nodes or links', () => {
  const nodes = [
    { id: 1, type: 'EmptyImage', pos: [0, 0], widgets_values: [64] },
    { id: 2, type: 'SaveImage', pos: [9, 9], widgets_values: ['a'] },
  ]
  const saved = { nodes, links: [[1, 1, 0, 2, 0, 'IMAGE']], version: 0.4 }
  const moved = nodes.map((node) => ({ ...node, pos: [5, 5], widgets_values: ['other'] })).reverse()
  assert.equal(shape({ ...saved, nodes: moved }), shape(saved))
  const asObjects = [{ id: 7, origin_id: 1, origin_slot: 0, target_id: 2, target_slot: 0, type: 'IMAGE' }]
  assert.equal(shape({ ...saved, links: asObjects }), shape(saved))
  assert.notEqual(shape({ ...saved, links: [] }), shape(saved))
  const within = (type: string) => ({
    ...saved,
    definitions: { subgraphs: [{ id: 'x', nodes: [{ id: 1, type }], links: [] }] },
  })
  assert.notEqual(shape(within('A')), shape(within('B')))

  const graph = (seed: number, from: [string, number]) => ({
    '1': { class_type: 'K', inputs: { seed, size: [1, 2] } },
    '2': { class_type: 'SaveImage', inputs: { images: from } },
  })
  assert.equal(shape(graph(1, ['1', 0])), shape(graph(2, ['1', 0])))
  assert.notEqual(shape(graph(1, ['1', 0])), shape(graph(1, ['1', 1])))
})

test('says what is wrong with a text', () => {
  assert.throws(() => readWorkflowText('{"1": {'), /^Error: is not valid JSON: /)
  for (const text of ['[]', '{}', '3', '{"1": {"inputs": {}}}'])
    assert.throws(() => readWorkflowText(text), /holds no workflow/)
})
