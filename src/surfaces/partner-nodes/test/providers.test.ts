/** One exchange each as the unmodified nodes make it, against fakes that answer as the providers' documentation says. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { bflFake } from '../../../../test/support/providers/fake-providers/bfl.ts'
import { byteplusFake } from '../../../../test/support/providers/fake-providers/byteplus.ts'
import {
  ideogramFake,
  openaiFake,
  recraftFake,
  stabilityFake,
} from '../../../../test/support/providers/fake-providers/direct.ts'
import type { FakeCard } from '../../../../test/support/providers/fake-providers/fake-card.ts'
import { geminiFake, veoFake } from '../../../../test/support/providers/fake-providers/google.ts'
import { klingFake } from '../../../../test/support/providers/fake-providers/kling.ts'
import { lumaFake } from '../../../../test/support/providers/fake-providers/luma.ts'
import { wanFake, xaiFake } from '../../../../test/support/providers/fake-providers/queues.ts'
import { runwayFake } from '../../../../test/support/providers/fake-providers/runway.ts'
import { type NodeService, startNodeService } from './node-service.ts'

interface Exchange {
  readonly what: string
  readonly card: FakeCard
  readonly path: string
  readonly body: object | FormData
  /** In millionths of a US dollar. */
  readonly costs: number
  /** Where the node asks, made from the answer to its submit, and when it stops; left out: the answer is the result. */
  readonly poll?: (answer: Told) => readonly [method: string, path: string, body?: object]
  readonly isDone?: (answer: Told) => boolean
}

type Told = Record<string, unknown> & {
  readonly id: string
  readonly name: string
  readonly request_id: string
  readonly data: { readonly task_id: string; readonly task_status: string }
  readonly output: { readonly task_id: string; readonly task_status: string }
}

function form(fields: Record<string, string>, file?: string): FormData {
  const made = new FormData()
  for (const [name, value] of Object.entries(fields)) made.set(name, value)
  if (file !== undefined) made.set(file, new Blob(['a picture'], { type: 'image/png' }), 'image.png')
  return made
}

const TASKS = '/proxy/byteplus/api/v3/contents/generations/tasks'
const SYNTHESIS = '/proxy/wan/api/v1/services/aigc/video-generation/video-synthesis'
const VEO = '/proxy/veo/veo-3.1-generate-001'
const HI = { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }

const EXCHANGES: readonly Exchange[] = [
  {
    what: 'image',
    card: openaiFake,
    path: '/proxy/openai/images/generations',
    body: { model: 'gpt-image-1', prompt: 'a cat', quality: 'low', size: 'auto', n: 1 },
    costs: 166_500,
  },
  {
    what: 'image from an uploaded one',
    card: openaiFake,
    path: '/proxy/openai/images/edits',
    body: form({ model: 'gpt-image-1', prompt: 'a hat', n: '1' }, 'image[]'),
    costs: 166_500,
  },
  {
    what: 'text',
    card: openaiFake,
    path: '/proxy/openai/v1/responses',
    body: { model: 'gpt-5', store: true, input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }] },
    costs: 54,
    poll: ({ id }) => ['GET', `/proxy/openai/v1/responses/${id}`],
    isDone: ({ status }) => status === 'completed',
  },
  {
    what: 'text and image',
    card: geminiFake,
    path: '/proxy/vertexai/gemini/gemini-2.5-flash-image',
    body: HI,
    costs: 38_703,
  },
  {
    what: 'image from a form',
    card: stabilityFake,
    path: '/proxy/stability/v2beta/stable-image/generate/ultra',
    body: form({ prompt: 'a cat', seed: '1', aspect_ratio: '1:1' }),
    costs: 80_000,
  },
  {
    what: 'image from a form',
    card: ideogramFake,
    path: '/proxy/ideogram/ideogram-v3/generate',
    body: form({ prompt: 'a cat', rendering_speed: 'TURBO', num_images: '2' }),
    costs: 60_000,
  },
  {
    what: 'image of a given character',
    card: ideogramFake,
    path: '/proxy/ideogram/ideogram-v3/generate',
    body: form({ prompt: 'a cat', rendering_speed: 'TURBO', num_images: '2' }, 'character_reference_images'),
    costs: 200_000,
  },
  {
    what: 'image',
    card: recraftFake,
    path: '/proxy/recraft/image_generation',
    body: { prompt: 'a cat', model: 'recraftv3', size: '1024x1024', n: 2, response_format: 'url' },
    costs: 80_000,
  },
  {
    what: 'image from an uploaded one',
    card: recraftFake,
    path: '/proxy/recraft/images/crispUpscale',
    body: form({}, 'image'),
    costs: 4000,
  },
  {
    what: 'image',
    card: xaiFake,
    path: '/proxy/xai/v1/images/generations',
    body: { model: 'grok-imagine-image', prompt: 'a cat', n: 1 },
    costs: 20_000,
  },
  {
    what: 'image',
    card: byteplusFake,
    path: '/proxy/byteplus/api/v3/images/generations',
    body: { model: 'seedream-4-0-250828', prompt: 'a cat', size: '2048x2048', sequential_image_generation: 'disabled' },
    costs: 30_000,
  },
  {
    what: 'video',
    card: byteplusFake,
    path: TASKS,
    body: {
      model: 'seedance-1-0-pro-250528',
      content: [{ type: 'text', text: 'a cat' }],
      duration: 5,
      resolution: '720p',
    },
    costs: 280_000,
    poll: ({ id }) => ['GET', `${TASKS}/${id}`],
    isDone: ({ status }) => status === 'succeeded',
  },
  {
    what: 'video whose options stand in its text',
    card: byteplusFake,
    path: TASKS,
    body: {
      model: 'seedance-1-0-pro-250528',
      content: [{ type: 'text', text: 'a cat --resolution 1080p --ratio 16:9 --duration 10 --seed 0' }],
    },
    costs: 1_220_000,
    poll: ({ id }) => ['GET', `${TASKS}/${id}`],
    isDone: ({ status }) => status === 'succeeded',
  },
  {
    what: 'video',
    card: klingFake,
    path: '/proxy/kling/v1/videos/text2video',
    body: { model_name: 'kling-v2-6', prompt: 'a cat', mode: 'pro', duration: '5', sound: 'off' },
    costs: 350_000,
    poll: ({ data }) => ['GET', `/proxy/kling/v1/videos/text2video/${data.task_id}`],
    isDone: ({ data }) => data.task_status === 'succeed',
  },
  {
    what: 'video',
    card: lumaFake,
    path: '/proxy/luma/generations',
    body: { model: 'ray-2', prompt: 'a cat', resolution: '540p', duration: '5s', aspect_ratio: '16:9' },
    costs: 400_000,
    poll: ({ id }) => ['GET', `/proxy/luma/generations/${id}`],
    isDone: ({ state }) => state === 'completed',
  },
  {
    what: 'video from an image',
    card: runwayFake,
    path: '/proxy/runway/image_to_video',
    body: { model: 'gen4_turbo', promptText: 'a cat', seed: 1, duration: 5, ratio: '1280:720', promptImage: [] },
    costs: 250_000,
    poll: ({ id }) => ['GET', `/proxy/runway/tasks/${id}`],
    isDone: ({ status }) => status === 'SUCCEEDED',
  },
  {
    what: 'video',
    card: wanFake,
    path: SYNTHESIS,
    body: { model: 'wan2.5-t2v-preview', input: { prompt: 'a cat' }, parameters: { size: '832*480', duration: 5 } },
    costs: 250_000,
    poll: ({ output }) => ['GET', `/proxy/wan/api/v1/tasks/${output.task_id}`],
    isDone: ({ output }) => output.task_status === 'SUCCEEDED',
  },
  {
    what: 'video',
    card: veoFake,
    path: `${VEO}/generate`,
    body: { instances: [{ prompt: 'a cat' }], parameters: { durationSeconds: 8, sampleCount: 1 } },
    costs: 3_200_000,
    poll: ({ name }) => ['POST', `${VEO}/poll`, { operationName: name }],
    isDone: ({ done }) => done === true,
  },
  {
    what: 'video',
    card: xaiFake,
    path: '/proxy/xai/v1/videos/generations',
    body: { model: 'grok-imagine-video', prompt: 'a cat', duration: 8, resolution: '720p' },
    costs: 560_000,
    poll: ({ request_id }) => ['GET', `/proxy/xai/v1/videos/${request_id}`],
    isDone: ({ status }) => status === 'done',
  },
]

let service: NodeService
before(async () => {
  const cards = [...new Set(EXCHANGES.map(({ card }) => card)), bflFake]
  service = await startNodeService(cards, { veo: { project: 'p' } })
})
after(() => service[Symbol.asyncDispose]())

for (const { what, card, path, body, costs, poll, isDone } of EXCHANGES) {
  test(`${card.provider}: ${what} by ${path} is made once and charged once`, async () => {
    const fake = service.fakeOf(card)
    fake.reset('success')
    const answer = await service.send('POST', path, body)
    assert.equal(answer.status, 200, await answer.clone().text())
    let told = (await answer.json()) as Told
    const question = poll?.(told)
    while (question !== undefined && isDone?.(told) !== true) {
      const polled = await service.send(...question)
      assert.equal(polled.status, 200, await polled.clone().text())
      told = (await polled.json()) as Told
    }
    assert.equal(await service.charged(), costs)
    assert.equal(fake.generations, 1)
  })
}
