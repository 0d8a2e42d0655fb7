/** The whole service with a real provider's rules against its fake: what a caller of the router gets, byte for byte. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import OpenAI, { APIError, toFile } from 'openai'
import sharp from 'sharp'
import { startTestApp, type TestApp, type TestAppOptions } from '../../support/app/start-app.ts'
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { elevenlabsFake, openaiFake } from '../../support/providers/fake-providers/direct.ts'
import {
  type FakeCard,
  type FakeProvider,
  PNG_BYTES,
  startFakeProvider,
} from '../../support/providers/fake-providers/fake-card.ts'
import { xaiFake } from '../../support/providers/fake-providers/queues.ts'
import { createLoopbackNetwork } from '../../support/providers/loopback-network.ts'
import { waitUntil } from '../../support/wait-until.ts'

let app: TestApp
let options: TestAppOptions
let fakes: ReadonlyMap<FakeCard, FakeProvider>
const stack = new AsyncDisposableStack()

before(async () => {
  const cards = [bflFake, openaiFake, elevenlabsFake, xaiFake]
  fakes = new Map(await Promise.all(cards.map(async (card) => [card, await startFakeProvider(card)] as const)))
  for (const fake of fakes.values()) stack.use(fake)
  const directory = await mkdtemp(path.join(tmpdir(), 'atelier-test-'))
  stack.defer(() => rm(directory, { recursive: true, force: true }))
  const file = path.join(directory, 'providers.json')
  const settings = [...fakes].map(([card, fake]) => [card.provider, { key: card.key, base_url: fake.baseUrl }])
  await writeFile(file, JSON.stringify(Object.fromEntries(settings)))
  options = { settings: { providers: file }, overrides: { models: { network: createLoopbackNetwork() } } }
  app = stack.use(await startTestApp(options))
})
after(() => stack.disposeAsync())

function play(card: FakeCard, scenario = 'success'): FakeProvider {
  const fake = fakes.get(card)
  if (fake === undefined) throw new Error(`no fake for ${card.provider}`)
  fake.reset(scenario)
  fake.pendingPolls = 0
  return fake
}

function run(model: string, input: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${app.url}/v2/models/${model}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(input),
  })
}

test('a polled model gives its finished document, with the asset on our own storage and no key at the asset host', async () => {
  const fake = play(bflFake)
  const answer = await run('bfl/flux-2-pro', { prompt: 'a lighthouse' })
  assert.equal(answer.status, 200)
  const { status, result } = (await answer.json()) as { status: string; result: { sample: string; seed: number } }
  assert.equal(status, 'Ready')
  assert.ok(result.sample.startsWith(`${app.url}/content/`), result.sample)
  const picture = await fetch(result.sample)
  assert.deepEqual(Buffer.from(await picture.arrayBuffer()), PNG_BYTES)
  assert.equal(picture.headers.get('content-type'), 'image/png')
  const delivery = fake.requests.filter((request) => request.path.startsWith('/assets/'))
  assert.equal(delivery.length, 1)
  assert.equal(delivery[0].headers['x-key'], undefined)
})

test('one asset that cannot be copied keeps its address, and the call succeeds', async () => {
  play(bflFake, 'one asset gone')
  const answer = await run('bfl/flux-2-pro', { prompt: 'a lighthouse' })
  const { result } = (await answer.json()) as { result: { sample: string; draft_cache: string } }
  assert.equal(answer.status, 200)
  assert.match(result.sample, /\/content\//)
  assert.match(result.draft_cache, /^http:\/\/delivery\.bfl\.ai:\d+\/assets\/draft$/)
})

test('an HTML page instead of a picture is not stored', async () => {
  play(bflFake, 'assets are pages')
  const { result } = (await (await run('bfl/flux-2-pro', { prompt: 'x' })).json()) as {
    result: { sample: string }
  }
  assert.match(result.sample, /^http:\/\/delivery\.bfl\.ai/)
})

test('a direct model: the input leaves with the model filled in, and the answer comes back as it was written', async () => {
  const fake = play(openaiFake)
  const answer = await run('openai/gpt-image-1', { prompt: 'a fox', n: 1, mask: 'https://x.example/m.png' })
  assert.equal(answer.status, 200)
  assert.deepEqual(fake.requests[0].json, { model: 'gpt-image-1', prompt: 'a fox', n: 1, stream: false })
  assert.equal(fake.requests[0].path, '/v1/images/generations')
  const { data } = (await answer.json()) as { data: { b64_json: string }[] }
  assert.equal(data[0].b64_json, 'iVBORw0KGgo=')
})

test('bytes come back under the type of the provider', async () => {
  play(elevenlabsFake)
  const input = { inputs: [{ text: 'Hello', voice_id: 'v1' }] }
  const answer = await run('elevenlabs/eleven_v3', input)
  assert.equal(answer.headers.get('content-type'), 'audio/mpeg')
  assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
  assert.equal(await answer.text(), 'ID3 sound')
})

test('a refusal that hides in a success is a refusal, recorded and told again without a second generation', async () => {
  const fake = play(xaiFake, 'policy')
  const headers = { 'idempotency-key': 'one' }
  const first = await run('xai/grok-imagine-image', { prompt: 'x' }, headers)
  assert.equal(first.status, 400)
  assert.equal(first.headers.get('x-service-error-type'), 'content_policy_violation')
  assert.equal(first.headers.get('x-service-upstream-status'), '200')
  const asked = fake.requests.length
  const again = await run('xai/grok-imagine-image', { prompt: 'x' }, headers)
  assert.equal(again.headers.get('idempotent-replayed'), 'true')
  assert.equal(fake.requests.length, asked)
})

test("a provider's own list of what is wrong is passed on unchanged", async () => {
  play(bflFake, 'invalid')
  const answer = await run('bfl/flux-2-pro', { prompt: 'x' })
  assert.equal(answer.status, 422)
  const { detail } = (await answer.json()) as { detail: unknown }
  assert.deepEqual(detail, [{ loc: ['body', 'prompt'], msg: 'prompt is empty', type: 'value_error', input: '' }])
})

test('a provider without a key is not enabled, and one whose key is refused is a failure of the provider', async () => {
  const fake = play(bflFake)
  const without = await run('luma/photon-1', { prompt: 'x' })
  assert.equal(without.status, 403)
  assert.equal(without.headers.get('x-service-error-type'), 'not_enabled')
  fake.reset('arrears')
  const arrears = await run('bfl/flux-2-pro', { prompt: 'x' })
  assert.equal(arrears.status, 502)
  assert.equal(arrears.headers.get('x-service-upstream-status'), '402')
  assert.doesNotMatch(await arrears.text(), /fake-bfl-key|credits/)
})

test("OpenAI's client makes pictures with models of the catalogue, in the sizes and forms that it asks for", async () => {
  const client = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: 'none' })
  const ids = (await client.models.list()).data.map(({ id }) => id)
  for (const id of ['bfl/flux-2-pro', 'openai/gpt-image-1', 'sandbox/image']) assert.ok(ids.includes(id), id)
  const toBytes = ({ data }: OpenAI.ImagesResponse) => Buffer.from(data?.[0]?.b64_json ?? '', 'base64')

  const flux = play(bflFake)
  const asked = { model: 'bfl/flux-2-pro', prompt: 'a lighthouse', size: '1024x512' as never }
  const made = await client.images.generate(asked)
  assert.deepEqual(toBytes(made), PNG_BYTES)
  const sent = flux.requests.find(({ method }) => method === 'POST')?.json
  assert.deepEqual([sent?.['prompt'], sent?.['width'], sent?.['height']], ['a lighthouse', 1024, 512])
  const [linked] = (await client.images.generate({ ...asked, response_format: 'url' })).data ?? []
  assert.deepEqual(Buffer.from(await (await fetch(linked?.url ?? '')).arrayBuffer()), PNG_BYTES)

  const gpt = play(openaiFake)
  const key = { headers: { 'Idempotency-Key': 'one picture' } }
  const picture = { model: 'openai/gpt-image-1', prompt: 'a fox', n: 1, quality: 'low' as const }
  const first = toBytes(await client.images.generate(picture, key))
  const replayed = await client.images.generate(picture, key).withResponse()
  assert.deepEqual(toBytes(replayed.data), first)
  assert.equal(replayed.response.headers.get('idempotent-replayed'), 'true')
  assert.deepEqual(
    gpt.requests.map(({ json }) => [json?.['model'], json?.['n'], json?.['quality']]),
    [['gpt-image-1', 1, 'low']],
  )
  const image = await toFile(PNG_BYTES, 'photo.png', { type: 'image/png' })
  await client.images.edit({ model: 'openai/gpt-image-1', prompt: 'at night', image, mask: image, size: '1024x1024' })
  const edit = gpt.requests.at(-1)
  assert.equal(edit?.path, '/v1/images/edits')
  for (const part of ['name="image', 'name="mask"', 'at night', '1024x1024']) assert.ok(edit?.raw.includes(part), part)

  play(xaiFake)
  const other = await client.images.edit({ model: 'xai/grok-imagine-image', prompt: 'x', image, size: '1536x1024' })
  assert.ok(toBytes(other).length > 0)

  const drawn = await client.images.generate({
    model: 'sandbox/image',
    prompt: 'x',
    size: '64x32' as never,
    output_format: 'webp',
  })
  assert.deepEqual([drawn.output_format, drawn.size], ['webp', '64x32'])
  const stored = await client.images.generate({ model: 'sandbox/image', prompt: 'x', response_format: 'url' })
  assert.equal((await fetch(stored.data?.[0]?.url ?? '')).headers.get('content-type'), 'image/png')
})

test('a stream of a model has the finished pictures, and a refusal before them is an answer', async () => {
  const client = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const asked = {
    model: 'sandbox/image',
    prompt: 'x',
    size: '64x32' as never,
    stream: true,
    partial_images: 2,
  } as const
  const events = []
  for await (const event of await client.images.generate(asked)) events.push(event)
  const [made] = events
  assert.deepEqual([events.length, made?.type, made?.size], [1, 'image_generation.completed', '64x32'])
  assert.equal((await sharp(Buffer.from(made?.b64_json ?? '', 'base64')).metadata()).width, 64)
  play(openaiFake, 'policy')
  const refused = await client.images.generate({ model: 'openai/gpt-image-1', prompt: 'x', stream: true }).then(
    () => assert.fail('it was answered'),
    (thrown: unknown) => thrown,
  )
  assert.ok(refused instanceof APIError)
  assert.deepEqual([refused.status, refused.code], [400, 'content_policy_violation'])
})

test('what a model cannot do for such a client is refused by its parameter, and nothing is sent', async () => {
  const client = new OpenAI({ baseURL: `${app.url}/v1`, apiKey: 'none', maxRetries: 0 })
  const fakesOf = [play(bflFake), play(xaiFake), play(openaiFake)]
  for (const [model, more, status, param] of [
    ['bfl/flux-2-pro', { n: 2 }, 400, 'n'],
    ['bfl/flux-2-pro', { size: '99999x1' }, 400, 'size'],
    ['bfl/flux-2-pro', { size: '64x64' }, 400, 'width'],
    ['bfl/flux-2-pro', { style: 'vivid' }, 400, 'style'],
    ['bfl/flux-2-pro', { colour: 'red' }, 400, 'colour'],
    ['bfl/flux-2-pro', { stream: true, response_format: 'url' }, 400, 'response_format'],
    ['xai/grok-imagine-image', { size: '100x7' }, 400, 'size'],
    ['openai/gpt-image-1', { prompt: undefined }, 400, 'prompt'],
    ['openai/gpt-image-1', { quality: 'best' }, 400, 'quality'],
    ['kling/kling-v2-6', {}, 403, null],
    ['elevenlabs/eleven_v3', {}, 404, 'model'],
    ['bfl/flux-9', {}, 404, 'model'],
  ] as const) {
    const error = await client.images.generate({ model, prompt: 'x', ...more } as never).then(
      () => assert.fail(`${model} was answered`),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof APIError)
    assert.deepEqual([model, more, error.status, error.param], [model, more, status, param], error.message)
  }
  for (const fake of fakesOf) assert.deepEqual(fake.requests, [])
})

test('a client of images is told not to send again what goes on without it, unless it has the key', async () => {
  const fake = play(bflFake)
  fake.pendingPolls = Number.POSITIVE_INFINITY
  await using other = await startTestApp({ ...options, settings: { ...options.settings, drainTimeout: '0s' } })
  const ask = (headers: Record<string, string>) =>
    fetch(`${other.url}/v1/images/generations`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json', ...headers } },
      body: JSON.stringify({ model: 'bfl/flux-2-pro', prompt: 'a lighthouse' }),
    })
  const asked = [ask({}), ask({ 'idempotency-key': 'mine' })]
  await waitUntil(() => fake.requests.filter(({ method }) => method === 'GET').length >= 2)
  await other.app.drain()
  const [plain, keyed] = await Promise.all(asked)
  const toldOf = (answer: Response | undefined) => [
    answer?.status,
    answer?.headers.get('x-should-retry') ?? null,
    answer?.headers.has('retry-after'),
  ]
  assert.deepEqual(
    [toldOf(plain), toldOf(keyed)],
    [
      [503, 'false', false],
      [503, null, true],
    ],
  )
})
