import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { silentLog } from '../../../lib/log.ts'
import type { SafeFetchOptions } from '../../../lib/outbound/safe-fetch.ts'
import { createHostAssets, type HostAssetsDeps } from '../../../src/adapters/providers/hosting/host-assets.ts'
import type { Asset } from '../../../src/domain/assets/asset.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { MP4_BYTES, PNG_BYTES } from '../../support/providers/fake-providers/fake-card.ts'
import { shippedModel } from '../../support/providers/provider-under-test.ts'

const BASE = 'https://atelier.example/prefix'
const HOUR_MS = 3_600_000

interface Served {
  readonly status?: number
  readonly type?: string
  readonly bytes: Buffer
}

function keyFor(host: string): Readonly<Record<string, string>> {
  return host.endsWith('googleapis.com') ? { authorization: 'Bearer t' } : {}
}

function createBench(served: Readonly<Record<string, Served>>) {
  const clock = createFixedClock()
  const minted: Asset[] = []
  const fetched: { url: string; key: Readonly<Record<string, string>> }[] = []
  const deps: HostAssetsDeps = {
    async fetch(url: string, options: SafeFetchOptions) {
      fetched.push({ url, key: options.headersFor?.(new URL(url)) ?? {} })
      const found = served[url]
      if (found === undefined) throw new Error('unreachable')
      const headers = found.type === undefined ? {} : { 'content-type': found.type }
      return { status: found.status ?? 200, headers, body: Readable.from([found.bytes]) }
    },
    async storeBlob(source, { maxBytes }) {
      const chunks: Uint8Array[] = []
      for await (const chunk of source) chunks.push(chunk)
      const sizeBytes = Buffer.concat(chunks).length
      if (sizeBytes > maxBytes) throw new Error('too large')
      return { hash: `hash-of-${sizeBytes}`, sizeBytes }
    },
    assets: {
      async mint({ asset }) {
        minted.push(asset)
        return { outcome: 'minted', asset, newToAccount: true }
      },
    },
    sign: ({ assetId, expiresAt }) => `/content/${assetId}?until=${expiresAt.toISOString()}`,
    newId: () => `asset-${minted.length + 1}`,
    clock,
    log: silentLog,
    maxBytes: 10_000,
    downloadHeaders: async () => (url) => keyFor(url.hostname),
  }
  const hostAssets = createHostAssets(deps)
  async function host(id: string, document: unknown, inlineParts: string | null = null) {
    const model = await shippedModel(id)
    const body = Buffer.from(typeof document === 'string' ? document : JSON.stringify(document))
    const options = { signal: new AbortController().signal, deadline: new Date(clock.now().getTime() + 60_000) }
    const hosted = await hostAssets(
      { model, accountId: 'a', isOwnKey: false, callId: 'c', baseUrl: BASE, body, inlineParts },
      options,
    )
    return { ...hosted, sent: body, document: JSON.parse(hosted.body.toString()) }
  }
  return { host, minted, fetched, clock }
}

test('each hosted leaf becomes an address of ours that lives as long as its group says', async () => {
  const { host, minted, clock } = createBench({
    'https://cdn.example/v.mp4?sig=1': { bytes: MP4_BYTES, type: 'video/mp4' },
  })
  const { document, hasForeignUrls } = await host('minimax/minimax-h3', {
    task: { status: 'succeeded', content: { url: 'https://cdn.example/v.mp4?sig=1' } },
  })
  const until = new Date(clock.now().getTime() + 12 * HOUR_MS)
  assert.equal(document.task.content.url, `${BASE}/content/asset-1?until=${until.toISOString()}`)
  assert.equal(hasForeignUrls, false)
  assert.deepEqual([minted[0].accountId, minted[0].contentType, minted[0].expiresAt], ['a', 'video/mp4', until])
})

test('a leaf that cannot be copied keeps its address; the others are replaced', async () => {
  const { host } = createBench({
    'https://cdn.example/v': { bytes: MP4_BYTES },
    'https://cdn.example/gone': { status: 404, bytes: Buffer.alloc(0) },
  })
  const content = { video_url: 'https://cdn.example/v', last_frame_url: 'https://cdn.example/gone' }
  const { document, hasForeignUrls } = await host('byteplus/seedance-1-5-pro-251215', { id: '1', content })
  assert.match(document.content.video_url, /^https:\/\/atelier/)
  assert.equal(document.content.last_frame_url, 'https://cdn.example/gone')
  assert.equal(hasForeignUrls, true)
})

test('the type of a copy: what the server says, else what the bytes are, else what the model makes', async () => {
  const url = 'https://cdn.example/x'
  const CASES: [Served, string | null][] = [
    [{ bytes: PNG_BYTES, type: 'image/webp' }, 'image/webp'],
    [{ bytes: PNG_BYTES, type: 'application/octet-stream' }, 'image/png'],
    [{ bytes: PNG_BYTES }, 'image/png'],
    [{ bytes: Buffer.from('???'), type: 'binary/octet-stream' }, 'image/jpeg'],
    [{ bytes: Buffer.from('<html>'), type: 'text/html' }, null],
    [{ bytes: Buffer.from('<svg xmlns="x"></svg>'), type: 'image/svg+xml' }, null],
    [{ bytes: Buffer.alloc(0), type: 'image/png' }, null],
    [{ bytes: Buffer.alloc(20_000), type: 'image/png' }, null],
  ]
  for (const [served, expected] of CASES) {
    const { host, minted } = createBench({ [url]: served })
    const { document } = await host('bfl/flux-2-pro', { status: 'Ready', result: { sample: url } })
    assert.equal(minted[0]?.contentType ?? null, expected)
    assert.equal(document.result.sample === url, expected === null)
  }
})

test('what is not rewritten keeps its bytes, digits included', async () => {
  const { host } = createBench({ 'https://cdn.example/x': { bytes: PNG_BYTES } })
  const text = '{ "status":"Ready", "result":{"sample":"https://cdn.example/x","seed":18446744073709551615} }'
  const copied = await host('bfl/flux-2-pro', text)
  assert.match(copied.body.toString(), /18446744073709551615/)
  const left = await host('bfl/flux-2-pro', text.replace('cdn.example', 'down.example'))
  assert.equal(left.body, left.sent)
  const inline = await host('openai/gpt-image-1', '{"data":[{"b64_json":"eA=="}]}')
  assert.equal(inline.body, inline.sent)
  assert.equal(inline.hasForeignUrls, false)
})

test('a model whose results are not hosted is only looked at: its addresses are foreign', async () => {
  const { host, fetched } = createBench({})
  const { hasForeignUrls } = await host('kling/kling-v2-6', {
    data: { task_result: { videos: [{ url: 'https://k.example/v.mp4' }] } },
  })
  assert.equal(hasForeignUrls, true)
  const listed = await host('replicate/flux-schnell', { output: ['https://r.example/1.webp'] })
  assert.equal(listed.hasForeignUrls, true)
  assert.deepEqual(fetched, [])
})

test('xai: every picture is copied and none comes twice', async () => {
  const { host } = createBench({
    'https://x.example/1': { bytes: PNG_BYTES },
    'https://x.example/2': { bytes: PNG_BYTES },
  })
  const data = [
    { url: 'https://x.example/1', b64_json: 'eA==' },
    { url: 'https://x.example/2', b64_json: null },
  ]
  const { document, hasForeignUrls } = await host('xai/grok-imagine-image', { data })
  for (const { url, b64_json } of document.data) assert.deepEqual([url.startsWith(BASE), b64_json], [true, null])
  assert.equal(hasForeignUrls, false)
})

test('veo: a clip in the bucket is fetched with the key and becomes a signed address; one inline stays as it is', async () => {
  const download = 'https://storage.googleapis.com/storage/v1/b/our-bucket/o/clips%2F1.mp4?alt=media'
  const { host, fetched } = createBench({ [download]: { bytes: MP4_BYTES, type: 'video/mp4' } })
  const { document } = await host('veo/veo-3.1-generate-001', {
    done: true,
    response: { videos: [{ gcsUri: 'gs://our-bucket/clips/1.mp4' }] },
  })
  assert.match(document.response.videos[0].gcsUri, /^https:\/\/atelier\.example\/prefix\/content\//)
  assert.deepEqual(fetched[0].key, { authorization: 'Bearer t' })
  const inline = await host('veo/veo-3.1-generate-001', {
    done: true,
    response: { videos: [{ bytesBase64Encoded: 'AAAA' }] },
  })
  assert.equal(inline.document.response.videos[0].bytesBase64Encoded, 'AAAA')
})

test('no key goes to an asset host', async () => {
  const { host, fetched } = createBench({ 'https://cdn.example/x': { bytes: PNG_BYTES } })
  await host('bfl/flux-2-pro', { status: 'Ready', result: { sample: 'https://cdn.example/x' } })
  assert.deepEqual(fetched[0].key, {})
})

test('gemini: pictures become addresses when the caller asked for it, text parts stay', async () => {
  const { host, minted } = createBench({})
  const parts = [{ text: 'here' }, { inlineData: { mimeType: 'image/png', data: PNG_BYTES.toString('base64') } }]
  const document = { candidates: [{ content: { parts } }] }
  const asked = await host('vertexai/gemini-2.5-flash-image', document, 'candidates[].content.parts[]')
  const [text, picture] = asked.document.candidates[0].content.parts
  assert.deepEqual(text, { text: 'here' })
  assert.deepEqual(Object.keys(picture), ['fileData'])
  assert.match(picture.fileData.fileUri, /^https:\/\/atelier/)
  assert.equal(minted[0].sizeBytes, PNG_BYTES.length)
  const plain = await host('vertexai/gemini-2.5-flash-image', document)
  assert.deepEqual(plain.document, document)
})

test('a text that begins with an address is an answer like any other, and can be given again as long', async () => {
  const content = 'https://example.com is what you look for'
  const { document, hasForeignUrls } = await createBench({}).host('openrouter/chat-completions', {
    choices: [{ message: { role: 'assistant', content } }],
  })
  assert.equal(document.choices[0].message.content, content)
  assert.equal(hasForeignUrls, false)
})
