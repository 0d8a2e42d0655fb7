/** The promises of every engine, kept by the adapter: on the fake server, and on a real one when there is one. */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { systemClock } from '../../../lib/clock.ts'
import { silentLog } from '../../../lib/log.ts'
import { openComfyEngine } from '../../../src/adapters/engines/comfyui/comfy-engine.ts'
import type { EngineInput } from '../../../src/domain/engine/engine-port.ts'
import { describeEngine } from '../../contracts/engine.ts'
import { openRig, stepsGraph } from './support/harness.ts'

const bytes = readFileSync(new URL('../../fixtures/recordings/test.png', import.meta.url))
const picture: EngineInput = {
  hash: createHash('sha256').update(bytes).digest('hex'),
  sizeBytes: bytes.length,
  contentType: 'image/png',
  localPath: null,
  async *read() {
    yield bytes
  },
}

describeEngine('ComfyUI, the fake one', async () => {
  const rig = await openRig()
  return {
    engine: rig.engine,
    picture,
    slowGraph: (seed) => stepsGraph(1_000, 20, seed),
    [Symbol.asyncDispose]: () => rig[Symbol.asyncDispose](),
  }
})

const realUrl = process.env.ATELIER_TEST_COMFYUI_URL
if (realUrl !== undefined) {
  describeEngine(`ComfyUI at ${realUrl}`, async () => {
    const server = { kind: 'remote', url: new URL(realUrl) } as const
    const engine = await openComfyEngine({ server, log: silentLog, clock: systemClock })
    await engine.untilReady()
    return {
      engine,
      picture,
      slowGraph: slowBlur,
      [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
    }
  })
}

/** A real server checks for an interrupt between nodes: many heavy ones. */
function slowBlur(seed: number) {
  const size = { width: 1_024, height: 1_024, batch_size: 2, color: seed }
  const blur = (index: number) => ({
    class_type: 'ImageBlur',
    inputs: { image: [index === 0 ? 'start' : String(index - 1), 0], blur_radius: 20, sigma: 1 + index / 100 },
  })
  return {
    start: { class_type: 'EmptyImage', inputs: size },
    ...Object.fromEntries(Array.from({ length: 40 }, (_, index) => [String(index), blur(index)])),
    end: { class_type: 'PreviewImage', inputs: { images: ['39', 0] } },
  }
}
