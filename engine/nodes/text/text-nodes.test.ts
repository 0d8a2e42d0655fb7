import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { type JsonObject, parseLosslessJson } from '../../../lib/json/lossless-json.ts'
import { textNodes } from './text-nodes.ts'

const fixture = new URL('../../../test/fixtures/object_info.json', import.meta.url)
const recorded = parseLosslessJson(readFileSync(fixture, 'utf8')) as JsonObject

for (const { classType, definition } of textNodes) {
  test(`object_info of ${classType} is ComfyUI's, field by field and number by number`, () => {
    // The recording holds no prose, so ours takes no part in the comparison.
    const { description, ...rest } = definition
    assert.ok(typeof description === 'string' && description.length > 10)
    assert.deepStrictEqual(rest, recorded[classType])
  })
}

test('no class is listed twice', () => {
  assert.equal(new Set(textNodes.map(({ classType }) => classType)).size, textNodes.length)
})

test('regular expressions never run on the engine thread', () => {
  const costs = textNodes.filter(({ classType }) => classType.startsWith('Regex')).map((node) => node.costOf({}))
  assert.deepEqual(costs, ['compute', 'compute', 'compute'])
})
