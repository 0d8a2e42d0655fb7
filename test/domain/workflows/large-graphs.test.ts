/** Size must never cost the stack, an endless walk, or an answer larger than the question. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readGraph, writeGraph } from '../../../engine/graph/graph-json.ts'
import { validate } from '../../../engine/graph/validate/validate.ts'
import type { JsonObject, JsonValue } from '../../../lib/json/lossless-json.ts'
import { toRefusal } from '../../../src/domain/workflows/graph-refusals.ts'
import { recordedCatalog } from '../../support/engines/recorded-catalog.ts'

const catalog = recordedCatalog()
const SIZE = 10_000

function chain(first: JsonObject): JsonObject {
  const graph: JsonObject = { n0: first }
  for (let index = 1; index < SIZE - 1; index += 1) {
    const inputs = { image: [`n${index - 1}`, 0], upscale_method: 'area', width: 64, height: '64', crop: 'disabled' }
    graph[`n${index}`] = { class_type: 'ImageScale', inputs }
  }
  graph.save = { class_type: 'SaveImage', inputs: { images: [`n${SIZE - 2}`, 0], filename_prefix: 'x' } }
  return graph
}

const source: JsonObject = { class_type: 'EmptyImage', inputs: { width: 64, height: 64, batch_size: 1, color: 0 } }

test('a chain of 10,000 nodes is read and validated', () => {
  const result = validate(readGraph(chain(source)), { catalog })
  assert.deepEqual(result.goodOutputs, ['save'])
  assert.equal(result.graph.get('n5')?.inputs.height, 64)
})

test('a fault at the far end of a long chain is found and blamed once', () => {
  const result = validate(readGraph(chain({ class_type: 'EmptyImage', inputs: {} })), { catalog })
  assert.deepEqual(Object.keys(result.nodeErrors), ['n0'])
  assert.deepEqual(result.nodeErrors.n0.dependent_outputs, ['save'])
  const broken = validate(readGraph(chain({ class_type: 'ImageInvert', inputs: { image: ['none', 0] } })), { catalog })
  assert.equal(broken.nodeErrors.n0.errors[0].type, 'exception_during_inner_validation')
})

test('a cycle through 10,000 nodes is reported without writing it out for each of them', () => {
  const result = validate(readGraph(chain({ class_type: 'ImageInvert', inputs: { image: [`n${SIZE - 2}`, 0] } })), {
    catalog,
  })
  assert.equal(Object.keys(result.nodeErrors).length, SIZE - 1)
  assert.ok(result.nodeErrors.n7.errors[0].details.length < 5_000)
  assert.ok(JSON.stringify(toRefusal(result)?.details).length < 500_000)
})

test('overlapping cycles of nodes with many links are told without walking every path', () => {
  const graph: JsonObject = {}
  const count = 3_000
  for (let index = 0; index < count; index += 1) {
    const links: [string, JsonValue][] = Array.from({ length: 20 }, (_, turn) => [
      `images.image${turn}`,
      [`b${(index + 1 + turn * 149) % count}`, 0],
    ])
    graph[`b${index}`] = { class_type: 'BatchImagesNode', inputs: Object.fromEntries(links) }
  }
  graph.save = { class_type: 'SaveImage', inputs: { images: ['b0', 0], filename_prefix: 'x' } }
  assert.equal(validate(readGraph(graph), { catalog }).ok, false)
})

test('many outputs over many faulty nodes do not multiply', () => {
  const graph: JsonObject = { n0: { class_type: 'ImageInvert', inputs: {} } }
  const half = 5_000
  for (let index = 1; index < half; index += 1) {
    graph[`n${index}`] = { class_type: 'ImageScale', inputs: { image: [`n${index - 1}`, 0] } }
  }
  for (let index = 0; index < half; index += 1) {
    graph[`p${index}`] = { class_type: 'PreviewImage', inputs: { images: [`n${half - 1}`, 0] } }
  }
  const { nodeErrors } = validate(readGraph(graph), { catalog })
  assert.equal(Object.keys(nodeErrors).length, half)
  const entries = Object.values(nodeErrors).reduce((sum, node) => sum + node.dependent_outputs.length, 0)
  assert.ok(entries < 2_000_000)
})

test('writing a large graph gives back what was read', () => {
  const workflow = chain(source)
  assert.deepEqual(JSON.parse(writeGraph(readGraph(workflow))), workflow)
})
