/**
 * Node classes that exist only for the recordings of ComfyUI, as the page beside the recordings describes them: two of its
 * own and those of ComfyUI's test pack.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import sharp from 'sharp'
import { defineNode, type EngineNode, values } from '../../../engine/node/define-node.ts'
import { boolean, float, image, int } from '../../../engine/node/input-kinds.ts'
import {
  testExecutionBlocker,
  testFacts,
  testLazyMixImages,
  testSyncError,
} from '../../../engine/test/support/comfy-test-pack.ts'

/** A preview of 64x32 as ComfyUI sends it: fitted into 512 pixels, JPEG of quality 95. */
function paintPreview(step: number): Promise<Buffer> {
  const background = { r: (step * 40) % 256, g: 128, b: 64 }
  return sharp({ create: { width: 512, height: 256, channels: 3, background } })
    .jpeg({ quality: 95 })
    .toBuffer()
}

const demoSteps = defineNode({
  ...testFacts,
  classType: 'DemoSteps',
  displayName: 'DemoSteps',
  required: { steps: int(), ms: int(), preview: boolean() },
  optional: { image: image() },
  outputs: [{ type: 'IMAGE' }],
  cost: 'compute',
  async run({ steps, ms, preview }, context) {
    for (let step = 1; step <= steps; step++) {
      await sleep(ms)
      const bytes = preview ? await paintPreview(step) : null
      const picture = bytes === null ? undefined : { contentType: 'image/jpeg', bytes: new Uint8Array(bytes) }
      context.progress(step, steps, { picture })
    }
    const result = context.allocate([1, 8, 8, 3])
    result.data.fill(0)
    return { outputs: [result] }
  },
})

const demoText = defineNode({
  ...testFacts,
  classType: 'DemoText',
  displayName: 'DemoText',
  required: { image: image() },
  hidden: { unique_id: 'UNIQUE_ID' },
  outputs: [{ type: 'IMAGE' }],
  cost: 'inline',
  run({ image: picture }, context) {
    context.text('hello text')
    return values(picture)
  },
})

const testMixedExpansionReturns = defineNode({
  ...testFacts,
  classType: 'TestMixedExpansionReturns',
  displayName: 'TestMixedExpansionReturns',
  required: { input1: float() },
  outputs: [{ type: 'IMAGE' }, { type: 'IMAGE' }],
  cost: 'inline',
  run({ input1 }, context) {
    const white = context.allocate([1, 16, 16, 3])
    white.data.fill(1)
    if (input1 <= 0.2) return { outputs: [white, white] }
    const graph = context.newGraph()
    const size = { width: 16, height: 16, batch_size: 1 }
    const shares = graph.node('SolidMask', { value: input1, width: 16, height: 16 })
    const black = graph.node('EmptyImage', { ...size, color: 0 })
    const bright = graph.node('EmptyImage', { ...size, color: 0xffffff })
    const mix = graph.node('TestLazyMixImages', { image1: black(0), image2: bright(0), mask: shares(0) })
    return { outputs: [mix(0), white], expand: graph }
  },
})

export const nodes: readonly EngineNode[] = [
  demoSteps,
  demoText,
  testSyncError,
  testExecutionBlocker,
  testLazyMixImages,
  testMixedExpansionReturns,
]
