/** Pictures of an input that the router itself turns into files: where they may come from, what they may be, how large. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import type { JsonRecord } from '../../../src/domain/models/model.ts'
import { openaiFake } from '../../support/providers/fake-providers/direct.ts'
import { type FakeProvider, PNG_BYTES, startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'
import { type HttpFake, startHttpFake } from '../../support/providers/http-fake.ts'
import { openProviderUnderTest, type ProviderUnderTest } from '../../support/providers/provider-under-test.ts'

const PNG = `data:image/png;base64,${PNG_BYTES.toString('base64')}`
let fake: FakeProvider
let files: HttpFake
let under: ProviderUnderTest

before(async () => {
  fake = await startFakeProvider(openaiFake)
  files = await startHttpFake((request, response) => {
    if (request.url === '/away') return void response.writeHead(302, { location: 'http://elsewhere.example/' }).end()
    if (request.url === '/large')
      return void response.writeHead(200, { 'content-length': String(30 * 2 ** 20) }).flushHeaders()
    if (request.url === '/gone') return void response.writeHead(404).end()
    response.end(request.url === '/svg' ? '<svg xmlns="http://www.w3.org/2000/svg"/>' : PNG_BYTES)
  })
  under = await openProviderUnderTest(fake, { mediaHosts: ['.files.example'] })
})
after(async () => {
  await under[Symbol.asyncDispose]()
  await files[Symbol.asyncDispose]()
  await fake[Symbol.asyncDispose]()
})
beforeEach(() => fake.reset('success'))

const at = (path: string, host = 'cdn.files.example') => `http://${host}:${files.port}${path}`

async function edit(input: JsonRecord) {
  return under.submit('openai/gpt-image-1', { prompt: 'make it red', ...input })
}

test('an edit leaves as a form: text fields, the pictures as files, and the model filled in', async () => {
  const outcome = await edit({ image: [PNG, at('/a.png')], mask: PNG, n: 2, size: 'auto' })
  assert.equal(outcome.outcome, 'finished')
  const [{ path, headers, raw }] = fake.requests
  assert.equal(path, '/v1/images/edits')
  const type = headers['content-type'] ?? ''
  const form = await new Response(new Uint8Array(raw), { headers: { 'content-type': type } }).formData()
  assert.deepEqual(
    [form.get('model'), form.get('prompt'), form.get('n'), form.get('stream')],
    ['gpt-image-1', 'make it red', '2', 'false'],
  )
  const pictures = form.getAll('image[]') as File[]
  assert.deepEqual(
    pictures.map(({ name, type }) => [name, type]),
    [
      ['image-0.png', 'image/png'],
      ['image-1.png', 'image/png'],
    ],
  )
  assert.deepEqual(Buffer.from(await pictures[1].arrayBuffer()), PNG_BYTES)
  assert.equal((form.get('mask') as File).type, 'image/png')
  assert.equal(form.has('image'), false)
})

const REFUSED: [string, () => JsonRecord, string, RegExp][] = [
  [
    'an address off the list',
    () => ({ image: at('/a.png', 'other.example') }),
    'file_download_error',
    /other\.example/,
  ],
  ['a redirect off the list', () => ({ image: at('/away') }), 'file_download_error', /elsewhere\.example/],
  ['a picture that is gone', () => ({ image: at('/gone') }), 'file_download_error', /404/],
  ['an address that is none', () => ({ image: 'nonsense' }), 'value_error', /https address/],
  ['another scheme', () => ({ image: 'file:///etc/passwd' }), 'file_download_error', /https/],
  ['an svg', () => ({ image: at('/svg') }), 'unsupported_image_format', /svg/],
  [
    'a gif',
    () => ({ image: `data:image/gif;base64,${Buffer.from('GIF89a').toString('base64')}` }),
    'unsupported_image_format',
    /gif/,
  ],
  [
    'a text that says it is a png',
    () => ({ image: `data:image/png;base64,${Buffer.from('hello').toString('base64')}` }),
    'unsupported_image_format',
    /no known type/,
  ],
  ['broken base64', () => ({ image: 'data:image/png;base64,@@@' }), 'image_load_error', /base64/],
  ['a picture over the limit', () => ({ image: at('/large') }), 'file_too_large', /26214400/],
  [
    'a mask over its own limit',
    () => ({ image: PNG, mask: `data:image/png;base64,${'A'.repeat(6_000_000)}` }),
    'file_too_large',
    /4194304/,
  ],
]

for (const [name, input, type, words] of REFUSED) {
  test(`${name} is refused by name before anything is sent`, async () => {
    const outcome = await edit(input())
    assert.equal(outcome.outcome, 'refused')
    const { refusal } = outcome
    assert.equal(refusal.reason, 'invalid')
    assert.equal(refusal.generation, 'none')
    assert.equal(refusal.upstreamStatus, null)
    const [failure] = refusal.failures ?? []
    assert.equal(failure.type, type)
    assert.match(failure.msg, words)
    assert.match(failure.msg, /the image in (image|mask)/)
    assert.equal(fake.requests.length, 0)
  })
}

test('all pictures of a request together have a limit too', async () => {
  const big = Buffer.concat([PNG_BYTES, Buffer.alloc(24 * 2 ** 20)]).toString('base64')
  const outcome = await edit({ image: [1, 2, 3].map(() => `data:image/png;base64,${big}`) })
  assert.equal(
    outcome.outcome === 'refused' && outcome.refusal.reason === 'invalid' && outcome.refusal.failures?.[0].loc[2],
    2,
  )
  assert.equal(fake.requests.length, 0)
})
