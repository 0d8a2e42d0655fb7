/** What each provider is sent, and the small things that each of them does in its own way. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonRecord } from '../../../src/domain/models/catalog/model.ts'
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { byteplusFake } from '../../support/providers/fake-providers/byteplus.ts'
import {
  elevenlabsFake,
  ideogramFake,
  openaiFake,
  openrouterFake,
  stabilityFake,
} from '../../support/providers/fake-providers/direct.ts'
import { type FakeCard, startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'
import { geminiFake, veoFake } from '../../support/providers/fake-providers/google.ts'
import { klingFake } from '../../support/providers/fake-providers/kling.ts'
import { minimaxFake } from '../../support/providers/fake-providers/minimax.ts'
import { falFake, replicateFake, xaiFake } from '../../support/providers/fake-providers/queues.ts'
import { runwayFake } from '../../support/providers/fake-providers/runway.ts'
import {
  openProviderUnderTest,
  shippedModel,
  type UnderTestOptions,
} from '../../support/providers/provider-under-test.ts'

/** The first request that an input becomes, and how the call ended. */
async function send(
  card: FakeCard,
  model: string,
  input: JsonRecord,
  options: UnderTestOptions = {},
  scenario = 'success',
) {
  await using fake = await startFakeProvider(card)
  await using under = await openProviderUnderTest(fake, options)
  fake.reset(scenario)
  const outcome = await under.run(model, input)
  return { outcome, requests: fake.requests, first: fake.requests[0] }
}

function toForm(request: { readonly raw: Buffer; readonly headers: { readonly 'content-type'?: string } }) {
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  return new Response(new Uint8Array(request.raw), { headers }).formData()
}

describe('the model is named as the provider wants it', () => {
  const text = [{ type: 'text', text: 'x' }]
  const CASES: [FakeCard, string, JsonRecord, string, string | undefined][] = [
    [byteplusFake, 'byteplus/seedream-4-5-251128', { prompt: 'x' }, 'model', 'seedream-4-5-251128'],
    [klingFake, 'kling/kling-v2-6', { prompt: 'x' }, 'model_name', 'kling-v2-6'],
    [minimaxFake, 'minimax/minimax-h3', { content: text }, 'model', 'MiniMax-H3'],
    [elevenlabsFake, 'elevenlabs/eleven_v3', { inputs: [] }, 'model_id', 'eleven_v3'],
    [xaiFake, 'xai/grok-imagine-video', { prompt: 'x' }, 'model', 'grok-imagine-video'],
    [bflFake, 'bfl/flux-2-pro', { prompt: 'x' }, 'model', undefined],
  ]
  for (const [card, model, input, field, name] of CASES) {
    test(model, async () => {
      const { first } = await send(card, model, input)
      assert.equal(first.json?.[field], name)
    })
  }
})

describe('what decides the price is never left to chance', () => {
  const CASES: [FakeCard, string, JsonRecord, JsonRecord][] = [
    [
      byteplusFake,
      'byteplus/dreamina-seedance-2-0-260128',
      { content: [{ type: 'text', text: 'x' }] },
      { duration: 5, resolution: '720p' },
    ],
    [klingFake, 'kling/kling-v3', { prompt: 'x' }, { duration: '5', mode: 'std' }],
    [
      minimaxFake,
      'minimax/minimax-h3',
      { content: [{ type: 'text', text: 'x' }] },
      { duration: 6, resolution: '768P' },
    ],
    [xaiFake, 'xai/grok-imagine-video', { prompt: 'x' }, { duration: 8 }],
    [bflFake, 'bfl/flux-3-video', { mode: 't2v' }, { duration: 5, resolution: 'hd' }],
    [falFake, 'fal/fal-seedance-2.0', { prompt: 'x' }, { duration: '5', resolution: '720p' }],
  ]
  for (const [card, model, input, pinned] of CASES) {
    test(model, async () => {
      const { first } = await send(card, model, input)
      for (const [field, value] of Object.entries(pinned)) assert.equal(first.json?.[field], value, field)
      const own = Object.fromEntries(
        Object.keys(pinned).map((field) => [field, field === 'mode' ? 'pro' : pinned[field]]),
      )
      const chosen = await send(card, model, { ...input, ...own })
      for (const [field, value] of Object.entries(own)) assert.equal(chosen.first.json?.[field], value, field)
    })
  }
})

test('bfl: what a call cost is known from the submit, too, where the finished document does not say', async () => {
  const { outcome } = await send(bflFake, 'bfl/flux-3-video', { mode: 't2v', duration: 'auto' }, {}, 'other field')
  assert.equal(outcome.outcome === 'finished' && outcome.result.costMicros, 30_000)
})

test('kling: a picture makes it another operation, polled under its own path', async () => {
  const { requests } = await send(klingFake, 'kling/kling-v2-6', { prompt: 'x', image: 'aGVsbG8=' })
  assert.equal(requests[0].path, '/v1/videos/image2video')
  assert.equal(requests[0].json?.['image'], 'aGVsbG8=')
  assert.match(requests[1].path, /^\/v1\/videos\/image2video\/task-1$/)
})

test('kling: a picture with the prefix of a data URI is refused before it is sent', async () => {
  const { outcome, requests } = await send(klingFake, 'kling/kling-v2-6', {
    prompt: 'x',
    image: 'data:image/png;base64,eA==',
  })
  assert.equal(outcome.outcome, 'refused')
  assert.match(outcome.refusal.message, /^image takes an https address or bare base64/)
  assert.equal(requests.length, 0)
})

test('kling: a key of one piece is sent as it is', async () => {
  const { outcome } = await send(klingFake, 'kling/kling-v2-6', { prompt: 'x' }, { key: 'plain-kling-key' })
  assert.equal(outcome.outcome, 'finished')
})

test('a refusal that is told inside a success shows the words of the provider and its cost where refusals are charged', async () => {
  const { outcome } = await send(runwayFake, 'runway/gen4_image', { promptText: 'x', ratio: '1024:1024' }, {}, 'policy')
  assert.equal(outcome.outcome, 'refused')
  assert.equal((await shippedModel('runway/gen4_image')).chargesOnPolicyRejection, 'yes')
  assert.equal((await shippedModel('bfl/flux-2-pro')).chargesOnPolicyRejection, 'no')
  const moderated = await send(bflFake, 'bfl/flux-2-pro', { prompt: 'x' }, {}, 'output moderated')
  assert.equal(
    moderated.outcome.outcome === 'refused' &&
      moderated.outcome.refusal.reason === 'policy' &&
      moderated.outcome.refusal.costMicros,
    null,
  )
})

test('xai and seedream: a stream or bytes instead of addresses cannot be asked for', async () => {
  const grok = await send(xaiFake, 'xai/grok-imagine-image', { prompt: 'x', response_format: 'b64_json' })
  assert.equal(grok.first.json?.['response_format'], 'url')
  const dream = await send(byteplusFake, 'byteplus/seedream-4-5-251128', { prompt: 'x', stream: true })
  assert.equal(dream.first.json?.['stream'], false)
})

test('gemini: the field that only the router reads stays here, and asks for hosting', async () => {
  const contents = [{ role: 'user', parts: [{ text: 'a vase' }] }]
  const { first, outcome } = await send(geminiFake, 'vertexai/gemini-2.5-flash-image', {
    contents,
    uploadImagesToStorage: true,
  })
  assert.deepEqual(first.json, { contents })
  assert.equal(first.path, '/v1beta/models/gemini-2.5-flash-image:generateContent')
  assert.equal(outcome.outcome === 'finished' && outcome.result.inlineParts, 'candidates[].content.parts[]')
})

test('gemini over Vertex: project and location are in the path, and a token is a bearer', async () => {
  const options = { key: 'ya29.fake-token', values: { api: 'vertex', project: 'p1', location: 'europe-west4' } }
  const { first } = await send(geminiFake, 'vertexai/gemini-2.5-flash-image', { contents: [] }, options)
  assert.equal(
    first.path,
    '/v1/projects/p1/locations/europe-west4/publishers/google/models/gemini-2.5-flash-image:generateContent',
  )
  assert.equal(first.headers['x-goog-api-key'], undefined)
})

function storageOf(body: Record<string, unknown> | null): unknown {
  return (body?.['parameters'] as JsonRecord | undefined)?.['storageUri']
}

describe('veo: where the clip is written', () => {
  const input = { instances: [{ prompt: 'x' }] }
  const stored = { values: { project: 'p1', storage_uri: 'gs://our-bucket/veo' } }
  test('nowhere: it comes inline', async () => {
    const { first } = await send(veoFake, 'veo/veo-3.1-generate-001', input, { values: { project: 'p1' } })
    assert.deepEqual(first.json?.['parameters'], { durationSeconds: 8, resolution: '720p', sampleCount: 1 })
  })
  test('into our bucket, when there is one', async () => {
    const { first } = await send(veoFake, 'veo/veo-3.1-generate-001', input, stored, 'stored')
    assert.equal(storageOf(first.json), 'gs://our-bucket/veo')
  })
  test("into the caller's own, which is left alone", async () => {
    const own = { ...input, parameters: { storageUri: 'gs://mine/clips' } }
    const { first } = await send(veoFake, 'veo/veo-3.1-generate-001', own, stored)
    assert.equal(storageOf(first.json), 'gs://mine/clips')
  })
  test('not into ours by the caller, who must not choose names there', async () => {
    const ours = { ...input, parameters: { storageUri: 'gs://our-bucket/veo/../other' } }
    const { requests, outcome } = await send(veoFake, 'veo/veo-3.1-generate-001', ours, stored)
    assert.equal(requests.length, 0)
    assert.equal(outcome.outcome === 'refused' && outcome.refusal.reason, 'invalid')
  })
  test('the other API is asked in its own way', async () => {
    const options = { key: 'fake-google-key', values: { api: 'gemini' } }
    const { outcome, requests } = await send(veoFake, 'veo/veo-3.1-generate-001', input, options, 'other api')
    assert.equal(outcome.outcome, 'finished')
    assert.equal(requests[0].path, '/v1beta/models/veo-3.1-generate-001:predictLongRunning')
    assert.match(requests[1].path, /^\/v1beta\/projects\/.+\/operations\/task-1$/)
    assert.equal(requests[1].method, 'GET')
  })
})

test('ideogram and stability: JSON comes in and a form goes out', async () => {
  const ideogram = await send(ideogramFake, 'ideogram/ideogram-4-5', {
    prompt: 'x',
    rendering_speed: 'TURBO',
    unheard_of: 1,
  })
  const form = await toForm(ideogram.first)
  assert.deepEqual([...form.entries()].sort(), [
    ['prompt', 'x'],
    ['rendering_speed', 'TURBO'],
  ])
  const palette = { members: [{ color: '#FF0000' }] }
  const nested = await send(ideogramFake, 'ideogram/ideogram-v4', {
    prompt: 'x',
    rendering_speed: 'TURBO',
    color_palette: palette,
    style_codes: ['0123ABCD', 'ABCD0123'],
  })
  const nestedForm = await toForm(nested.first)
  assert.equal(nestedForm.get('color_palette'), JSON.stringify(palette))
  assert.deepEqual(nestedForm.getAll('style_codes'), ['0123ABCD', 'ABCD0123'])
  const sd = await send(stabilityFake, 'stability/sd3.5-large', { prompt: 'x' })
  assert.equal((await toForm(sd.first)).get('model'), 'sd3.5-large')
  assert.equal(sd.first.headers.accept, 'application/json')
})

test('stability: an upscale runs as long as its result is answered with 202', async () => {
  const image = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=='
  const { outcome, requests } = await send(stabilityFake, 'stability/upscale-creative', { image, prompt: 'x' })
  assert.equal(outcome.outcome, 'finished')
  assert.equal(requests.length, 4)
  const late = await send(stabilityFake, 'stability/upscale-creative', { image, prompt: 'x' }, {}, 'late policy')
  assert.equal(late.outcome.outcome === 'refused' && late.outcome.refusal.reason, 'policy')
})

test('minimax, first API: the finished document carries the address that a second question gave, digits kept', async () => {
  const { outcome } = await send(minimaxFake, 'minimax/minimax-hailuo-02', { prompt: 'x' })
  assert.equal(outcome.outcome, 'finished')
  const { status, file_id, file } = JSON.parse(String(outcome.result.body))
  assert.deepEqual(
    [status, file_id, file.download_url],
    ['Success', '269401338200065', 'https://cdn.minimax.example/02.mp4'],
  )
})

test('fal: the addresses of the answer are used, and the result comes as the app wrote it', async () => {
  const { outcome, requests } = await send(falFake, 'fal/fal-seedance-2.0', { prompt: 'x' })
  assert.deepEqual(requests.map(({ path }) => path).slice(-2), [
    '/bytedance/seedance-2.0/requests/task-1/status',
    '/bytedance/seedance-2.0/requests/task-1',
  ])
  assert.equal(outcome.outcome, 'finished')
  assert.match(String(outcome.result.body), /"seed":18446744073709552000/)
  const invalid = await send(falFake, 'fal/fal-nano-banana-2', { prompt: 'xxx' }, {}, 'invalid')
  const refusal = invalid.outcome.outcome === 'refused' ? invalid.outcome.refusal : null
  assert.deepEqual(refusal?.reason === 'invalid' && refusal.failures?.[0].ctx, { le: 4 })
})

test('what is used and what it cost is read where the provider says it', async () => {
  const voice = await send(elevenlabsFake, 'elevenlabs/eleven_v3', { inputs: [] })
  assert.deepEqual(voice.outcome.outcome === 'finished' && voice.outcome.result.usage, { character_cost: 13 })
  const image = await send(openaiFake, 'openai/gpt-image-1', { prompt: 'x' })
  assert.deepEqual(image.outcome.outcome === 'finished' && image.outcome.result.usage?.['output_tokens'], 4160)
  const grok = await send(xaiFake, 'xai/grok-imagine-image', { prompt: 'x' })
  assert.equal(grok.outcome.outcome === 'finished' && grok.outcome.result.costMicros, 20_000)
  const { input } = await shippedModel('openrouter/chat-completions')
  const chat = await send(openrouterFake, 'openrouter/chat-completions', { ...input.example, stream: true })
  assert.equal(chat.first.json?.['stream'], false)
  assert.equal(chat.outcome.outcome === 'finished' && chat.outcome.result.costMicros, 420)
})

describe('a handle is all that is needed', () => {
  const CASES: [FakeCard, string, string | null][] = [
    [bflFake, 'bfl/flux-2-pro', null],
    [falFake, 'fal/fal-nano-banana-2', 'PUT'],
    [replicateFake, 'replicate/flux-schnell', 'POST'],
    [runwayFake, 'runway/gen4_image', 'DELETE'],
    [byteplusFake, 'byteplus/seedance-1-5-pro-251215', 'DELETE'],
  ]
  for (const [card, model, cancel] of CASES) {
    test(`${model}: another process collects it${cancel === null ? '' : ', or cancels it'}, and no secret is in it`, async () => {
      await using fake = await startFakeProvider(card)
      const { input } = await shippedModel(model)
      let handle: Json = null
      {
        await using first = await openProviderUnderTest(fake)
        const outcome = await first.submit(model, input.example ?? {})
        assert.equal(outcome.outcome, 'accepted')
        handle = JSON.parse(JSON.stringify(outcome.handle))
      }
      assert.doesNotMatch(JSON.stringify(handle), new RegExp(`${card.key}|prompt`))
      fake.pendingPolls = 0
      await using second = await openProviderUnderTest(fake)
      let outcome = await second.poll(model, handle)
      while (outcome.outcome === 'pending') outcome = await second.poll(model, handle)
      assert.equal(outcome.outcome, 'finished')
      assert.equal(fake.generations, 1)
      const signal = new AbortController().signal
      const deadline = new Date(second.clock.now().getTime() + 1000)
      await second.provider.cancel?.({ model: await shippedModel(model), accountId: 'a', handle }, { signal, deadline })
      const last = fake.requests.at(-1)
      if (cancel !== null) assert.equal(last?.method, cancel)
    })
  }
})
