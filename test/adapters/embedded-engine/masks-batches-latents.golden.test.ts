/** Masks, batches and latents: recorded results, and declarations that are ComfyUI's field by field. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { JsonObject } from '../../../src/lib/lossless-json.ts'
import { assertOutputs, readGoldenCases, toGraph } from './support/golden-cases.ts'
import { FIXTURES, openTestEngine, readFixture, type TestEngine } from './support/harness.ts'
import { nodes } from './support/masks-nodes-module.ts'

const golden = readGoldenCases('masks-batches-latents.json')
const names = ['a.png', 'b.png', 'c.png', 'rgba.png', 'lat1.latent', 'lat2.latent', 'lat3.latent']
const files = Object.fromEntries(names.map((name) => [name, `${FIXTURES}golden/inputs/${name}`]))

let engine: TestEngine
before(async () => {
  const nodeModules = ['./support/test-nodes.ts', './support/masks-nodes-module.ts']
  engine = await openTestEngine({
    threads: 1,
    nodeModules: nodeModules.map((path) => new URL(path, import.meta.url).href),
  })
})
after(() => engine[Symbol.asyncDispose]())

/** What went through 8 bit is n/255 exactly; latents are compared more closely than images. */
function toleranceOf(name: string): number {
  if (name.includes('bislerp')) return 1e-5
  if (name.includes('Grid')) return 1e-6
  return /Latent|Batch-fixed/.test(name) ? 5e-6 : 1e-5
}

for (const [name, golden_] of Object.entries(golden.cases)) {
  test(`${name} gives what ComfyUI gave`, async () => {
    assertOutputs(await engine.run(toGraph(golden, golden_), { files }), golden_, toleranceOf(name))
  })
}

const recorded = readFixture('object_info.json') as JsonObject

for (const { classType, definition } of nodes) {
  test(`object_info of ${classType} is ComfyUI's`, () => {
    const { description: _, ...rest } = definition as { description?: unknown }
    assert.deepStrictEqual(rest, recorded[classType])
  })
}
