/** All of the Jobs API over ComfyUI: over the fake one, and over a real one when ATELIER_TEST_COMFYUI_URL names it. */
import { describeJobsApi } from '../../contracts/jobs-api.ts'
import { startFleetApp } from '../../support/app/fleet-app.ts'
import { startTestApp } from '../../support/app/start-app.ts'
import { node, type Workflow } from '../../support/clients/checked-client.ts'

describeJobsApi('a fake ComfyUI', async () => {
  const app = await startFleetApp({ servers: [{}] })
  return {
    url: app.url,
    slowGraph: (seed) => ({
      '1': node('DemoSteps', { steps: 1_000, ms: 20, preview: false, seed: seed % 1_000_000 }),
      '2': node('SaveImage', { images: ['1', 0], filename_prefix: 'slow' }),
    }),
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  }
})

const realUrl = process.env.ATELIER_TEST_COMFYUI_URL
if (realUrl !== undefined) {
  describeJobsApi(`ComfyUI at ${realUrl}`, async () => {
    const app = await startTestApp({ settings: { comfyui: realUrl } })
    return { url: app.url, slowGraph: slowBlur, [Symbol.asyncDispose]: () => app[Symbol.asyncDispose]() }
  })
}

/** A real server looks for an interrupt between nodes: many heavy ones. */
function slowBlur(seed: number): Workflow {
  const blur = (index: number) =>
    node('ImageBlur', {
      image: [index === 0 ? 'start' : String(index - 1), 0],
      blur_radius: 20,
      sigma: 1 + index / 100,
    })
  return {
    start: node('EmptyImage', { width: 1_024, height: 1_024, batch_size: 2, color: seed }),
    ...Object.fromEntries(Array.from({ length: 40 }, (_, index) => [String(index), blur(index)])),
    end: node('PreviewImage', { images: ['39', 0] }),
  }
}
