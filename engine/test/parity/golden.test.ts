/** Results of single nodes, recorded from a real ComfyUI: every case, within the tolerances that the recordings state. */
import { readdirSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { assertOutputs, readGoldenCases, toGraph } from '../support/golden-cases.ts'
import { FIXTURES, openTestEngine, type TestEngine } from '../support/harness.ts'

const golden = readGoldenCases('golden.json')
const names = readdirSync(`${FIXTURES}golden/inputs`)
const files = Object.fromEntries(names.map((name) => [name, `${FIXTURES}golden/inputs/${name}`]))

let engine: TestEngine
before(async () => {
  engine = await openTestEngine({ threads: 2 })
})
after(() => engine[Symbol.asyncDispose]())

// What went through 8 bit is n/255 exactly.
const EIGHT_BIT = /lanczos|Quantize|Stitch-(right|down|left|alpha)|MaxDimension|CropImages|ShorterEdge|DrawBBoxes|Grid/

function toleranceOf(name: string): number {
  if (name === 'ImageCropToMask' || name === 'Painter-layer') return 1 / 255
  if (EIGHT_BIT.test(name)) return 1e-6
  return /Latent|Noise/.test(name) && !name.includes('bislerp') ? 5e-6 : 1e-5
}

for (const [name, recorded] of Object.entries(golden.cases)) {
  test(`${name} gives what ComfyUI gave`, async () => {
    assertOutputs(await engine.run(toGraph(golden, recorded), { files }), recorded, toleranceOf(name))
  })
}
