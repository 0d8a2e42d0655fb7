/** Any input to any operation: never a 5xx, never a hang, and every refusal uses the error envelope with a known code. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import fc from 'fast-check'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { sendRaw } from '../../support/clients/raw-http.ts'
import { GIVE_UP_MS } from '../../support/wait-until.ts'

const CODES = new Set([
  'invalid_request',
  'invalid_metadata_filter',
  'unauthorized',
  'forbidden',
  'forbidden_origin',
  'not_found',
  'blob_not_found',
  'output_unavailable',
  'hash_mismatch',
  'asset_in_use',
  'payload_too_large',
  'invalid_workflow',
  'workflow_format_ui',
  'missing_asset',
  'metadata_invalid',
  'idempotency_key_reuse',
  'queue_full',
  'rate_limited',
  'too_many_streams',
])

const RUNS = 150

interface Answer {
  readonly status: number
  readonly body: string
  readonly requestId: string | undefined
}

interface Call {
  readonly method: string
  readonly path: string
  readonly headers?: Record<string, string>
  readonly body?: Uint8Array | string
}

describe('any input', () => {
  let service: TestApp
  before(async () => {
    service = await startTestApp({ settings: { maxBody: '1MiB', maxUpload: '1MiB' } })
  })
  after(() => service[Symbol.asyncDispose]())

  function send({ method, path, headers = {}, body }: Call): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const url = new URL(service.url)
      const outgoing = request({ host: url.hostname, port: url.port, method, path, headers, timeout: GIVE_UP_MS })
      outgoing.on('timeout', () => outgoing.destroy(new Error(`${method} ${path} did not answer`)))
      outgoing.on('error', reject)
      outgoing.on('response', (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', reject)
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            body: Buffer.concat(chunks).toString(),
            requestId: response.headers['x-service-request-id'] as string | undefined,
          }),
        )
      })
      outgoing.end(body)
    })
  }

  function check(call: Call, answer: Answer): void {
    const where = `${call.method} ${call.path} -> ${answer.status} ${answer.body.slice(0, 300)}`
    assert.ok(answer.status < 500, where)
    assert.ok(answer.requestId, `no request id: ${where}`)
    if (answer.status < 400 || call.method === 'HEAD') return
    const { error } = JSON.parse(answer.body) as { error: { code: string; message: string; details: unknown } }
    assert.ok(CODES.has(error.code), where)
    assert.ok(error.message.length > 0, where)
    assert.ok('details' in error, where)
  }

  async function hold(calls: fc.Arbitrary<Call>, numRuns = RUNS): Promise<void> {
    await fc.assert(
      fc.asyncProperty(calls, async (call) => check(call, await send(call))),
      { numRuns, seed: 20_261_115 },
    )
  }

  const segment = fc.oneof(
    fc.uuid(),
    fc.string({ maxLength: 40 }).map(encodeURIComponent),
    fc.constantFrom(
      '..%2F..%2Ffree',
      '%00',
      '%ff',
      '%',
      'blake3:zz',
      'blake3%3A00',
      `blake3:${'a'.repeat(64)}`,
      '.',
      '%2e%2e',
      'a'.repeat(5000),
    ),
  )
  const path = fc.oneof(
    segment.map((id) => `/api/v2/jobs/${id}`),
    fc
      .tuple(segment, fc.constantFrom('events', 'cancel', 'logs', 'workflow', 'nothing'))
      .map(([id, tail]) => `/api/v2/jobs/${id}/${tail}`),
    segment.map((id) => `/api/v2/assets/${id}`),
    segment.map((id) => `/api/v2/assets/${id}/content`),
    segment.map((hash) => `/api/v2/assets/by-hash/${hash}`),
    fc.constantFrom(
      '/api/v2/jobs',
      '/api/v2/assets',
      '/api/v2/assets/from-hash',
      '/api/v2/health',
      '/api/v2/openapi.json',
      '/docs',
      '/',
      '/api',
      '/api/v2',
    ),
  )
  const query = fc.oneof(
    fc.constant(''),
    fc.webQueryParameters().map((text) => `?${text}`),
    fc
      .array(
        fc.tuple(
          fc.constantFrom('status', 'limit', 'cursor', 'metadata[a]', 'metadata[', 'metadata[]', 'metadata[a][b]'),
          fc.string({ maxLength: 30 }).map(encodeURIComponent),
        ),
      )
      .map((pairs) => `?${pairs.map(([name, value]) => `${name}=${value}`).join('&')}`),
    fc.constantFrom(
      '?%',
      '?limit=1;status=queued',
      '?limit=1e2',
      '?limit=-1',
      '?limit=99999999999999999999',
      '?cursor=%00',
      '?status=queued,queued',
    ),
  )
  const headerValue = fc.string({ unit: fc.constantFrom(...'abcXYZ019 ,;=-/*"\'()'), maxLength: 60 })
  const headers = fc.dictionary(
    fc.constantFrom(
      'range',
      'idempotency-key',
      'content-type',
      'authorization',
      'accept',
      'if-none-match',
      'x-forwarded-host',
      'expect-ct',
      'cookie',
    ),
    headerValue,
    { maxKeys: 4 },
  )
  const method = fc.constantFrom('GET', 'POST', 'DELETE', 'HEAD', 'PUT', 'PATCH', 'OPTIONS')

  test('on any path, with any query and header', async () => {
    await hold(
      fc.record({ method, path: fc.tuple(path, query).map(([route, text]) => route + text), headers }),
      RUNS * 4,
    )
  })

  test('as any JSON or bytes in a submit', async () => {
    const body = fc.oneof(
      fc.json(),
      fc.uint8Array({ maxLength: 2000 }),
      fc
        .anything({ withNullPrototype: true, maxDepth: 4 })
        .map((value) =>
          JSON.stringify({ workflow: value }, (_key, inner) => (typeof inner === 'bigint' ? Number(inner) : inner)),
        ),
    )
    await hold(
      body.map((bytes) => ({ method: 'POST', path: '/api/v2/jobs', body: bytes })),
      RUNS * 2,
    )
  })

  test('as nearly right submits', async () => {
    const value = fc.oneof(
      fc.jsonValue({ maxDepth: 3 }),
      fc.tuple(fc.constantFrom('1', '2', '3', '9'), fc.oneof(fc.integer({ min: -3, max: 5 }), fc.double())),
      fc.record({
        __type: fc.constant('core/ASSET'),
        info: fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.record({ id: fc.uuid() })),
      }),
      fc.constantFrom(18446744073709551615n, 1e308, -0, 'x'.repeat(3000), '__proto__'),
    )
    const classType = fc.oneof(
      fc.constantFrom(
        'LoadImage',
        'EmptyImage',
        'ImageScale',
        'SaveImage',
        'PreviewAny',
        'ImageBlend',
        'PrimitiveInt',
        'StringConcatenate',
      ),
      fc.jsonValue({ maxDepth: 1 }),
    )
    const inputs = fc.dictionary(
      fc.constantFrom(
        'image',
        'images',
        'width',
        'height',
        'upscale_method',
        'crop',
        'source',
        'value',
        'filename_prefix',
        '__proto__',
        'constructor',
      ),
      value,
      { maxKeys: 5 },
    )
    const workflow = fc.dictionary(
      fc.constantFrom('1', '2', '3', '4:1', '__proto__', ''),
      fc.oneof(
        { weight: 5, arbitrary: fc.record({ class_type: classType, inputs }) },
        { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 1 }) },
      ),
      { maxKeys: 4 },
    )
    const rest = fc.record(
      {
        metadata: fc.oneof(fc.jsonValue({ maxDepth: 2 }), fc.dictionary(fc.string(), fc.string())),
        priority: fc.oneof(fc.jsonValue({ maxDepth: 0 }), fc.integer(), fc.double()),
        extra_data: fc.oneof(
          fc.jsonValue({ maxDepth: 2 }),
          fc.record({ api_key_comfy_org: fc.string() }),
          fc.record({ extra_pnginfo: fc.jsonValue({ maxDepth: 2 }) }),
        ),
        webhook_url: fc.jsonValue({ maxDepth: 0 }),
        inputs: fc.jsonValue({ maxDepth: 0 }),
      },
      { requiredKeys: [] },
    )
    const body = fc
      .tuple(workflow, rest)
      .map(([graph, more]) =>
        JSON.stringify({ workflow: graph, ...more }, (_key, inner) =>
          typeof inner === 'bigint'
            ? (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(inner.toString())
            : inner,
        ),
      )
    await hold(
      body.map((text) => ({
        method: 'POST',
        path: '/api/v2/jobs',
        body: text,
        headers: { 'content-type': 'application/json' },
      })),
      RUNS * 3,
    )
  })

  test('as nearly right uploads', async () => {
    const part = fc.tuple(
      fc.constantFrom('content_type', 'file_path', 'expected_hash', 'tags', 'expires_in', 'file', 'other', '', '"'),
      fc.oneof(
        fc.string({ maxLength: 50 }),
        fc.constantFrom('image/png', 'a.png', '60', '../x', 'blake3:00', 'models/checkpoints/x.safetensors'),
      ),
      fc.boolean(),
    )
    const body = fc
      .tuple(fc.array(part, { maxLength: 7 }), fc.constantFrom('whole', 'cut', 'no-end', 'wrong-boundary'))
      .map(([parts, end]) => {
        const text = parts
          .map(
            ([name, content, isFile]) =>
              `--b\r\nContent-Disposition: form-data; name="${name}"${isFile ? '; filename="f.png"' : ''}\r\n\r\n${content}\r\n`,
          )
          .join('')
        if (end === 'whole') return `${text}--b--\r\n`
        if (end === 'cut') return text.slice(0, Math.floor(text.length / 2))
        return end === 'no-end' ? text : text.replaceAll('--b', '--c')
      })
    const contentType = fc.constantFrom(
      'multipart/form-data; boundary=b',
      'multipart/form-data',
      'application/json',
      'multipart/form-data; boundary=""',
    )
    await hold(
      fc.tuple(body, contentType).map(([text, type]) => ({
        method: 'POST',
        path: '/api/v2/assets',
        body: text,
        headers: { 'content-type': type },
      })),
      RUNS * 2,
    )
  })

  test('as bytes that are not HTTP', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.uint8Array({ maxLength: 400 }),
          fc.string({ maxLength: 200 }).map((text) => `GET ${text} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`),
          fc.constantFrom(
            'POST /api/v2/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\n{',
            'GET /api/v2/jobs HTTP/1.1\r\n\r\n',
            'POST /api/v2/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
            'GET / HTTP/9.9\r\n\r\n',
          ),
        ),
        async (bytes) => {
          const answer = await sendRaw({ url: service.url, bytes })
          assert.ok(answer === null || answer.status < 500, JSON.stringify(answer))
        },
      ),
      { numRuns: RUNS, seed: 20_261_115 },
    )
    assert.equal((await send({ method: 'GET', path: '/api/v2/health' })).status, 200, 'the service lives on')
  })
})
