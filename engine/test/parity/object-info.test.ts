import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonObject } from '../../../lib/json/lossless-json.ts'
import { createCatalog, toNodeTable } from '../../node/define-node.ts'
import { BUILT_IN_NODES } from '../../nodes/built-in.ts'
import { readFixture } from '../support/harness.ts'

const recorded = readFixture('object_info.json') as JsonObject
const catalog = createCatalog(toNodeTable(BUILT_IN_NODES))

// The recording holds no prose, so ours takes no part in the comparison.
function withoutProse(value: unknown): unknown {
  const { description: _, ...rest } = value as { description?: unknown }
  return rest
}

for (const classType of catalog.classTypes()) {
  test(`object_info of ${classType} is ComfyUI's, field by field and number by number`, () => {
    assert.ok(classType in recorded, `${classType} is not recorded`)
    assert.deepStrictEqual(withoutProse(catalog.find(classType)), recorded[classType])
  })
}

test('file names are judged by the nodes that read them, and only there', () => {
  assert.deepEqual(catalog.selfCheckedInputs('LoadImage'), ['image'])
  assert.deepEqual(catalog.selfCheckedInputs('LoadImageMask'), ['image'])
  assert.deepEqual(catalog.selfCheckedInputs('SaveImage'), [])
  assert.equal(catalog.find('NoSuchNode'), null)
})

test('every class is listed once and says what it does', () => {
  assert.equal(new Set(BUILT_IN_NODES.map(({ classType }) => classType)).size, BUILT_IN_NODES.length)
  for (const { classType, definition } of BUILT_IN_NODES) {
    assert.ok(String(definition.description).length >= 10, classType)
  }
})
