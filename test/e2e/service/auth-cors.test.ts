/** Who may call the whole service, and from where: on every operation, not only on one. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { startTestApp, type TestApp } from '../../support/app/start-app.ts'
import { call } from '../../support/clients/call.ts'
import { CheckedClient, node, refused } from '../../support/clients/checked-client.ts'
import { openEvents } from '../../support/clients/event-reader.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const TOKEN = 'correct-horse-battery'
const ALLOWED = 'https://app.example.com'
const ID = '0199b3f4-1d2e-7a3b-8c4d-5e6f70819234'
const WORKFLOW = JSON.stringify({ workflow: { '1': node('FakeSource') } })

/** Every operation on this job and this asset. The first read of a job warms the short way in front of the framework. */
function operationsOn(jobId: string, assetId: string): [method: string, path: string][] {
  return [
    ['GET', '/api/v2/jobs'],
    ['POST', '/api/v2/jobs'],
    ['GET', `/api/v2/jobs/${jobId}`],
    ['GET', `/api/v2/jobs/${jobId}?fresh=1`],
    ['GET', `/api/v2/jobs/${jobId}/workflow`],
    ['GET', `/api/v2/jobs/${jobId}/logs`],
    ['GET', `/api/v2/jobs/${jobId}/events`],
    ['POST', `/api/v2/jobs/${jobId}/cancel`],
    ['POST', '/api/v2/assets'],
    ['POST', '/api/v2/assets/from-hash'],
    ['GET', `/api/v2/assets/${assetId}`],
    ['DELETE', `/api/v2/assets/${assetId}`],
    ['GET', `/api/v2/assets/${assetId}/content`],
  ]
}

describe('with a token', () => {
  let service: TestApp
  let client: CheckedClient
  const engine = createFakeEngine()
  before(async () => {
    const settings = { token: TOKEN, corsOrigins: ALLOWED }
    service = await startTestApp({ settings, overrides: { engine } })
    client = new CheckedClient(service.url)
  })
  after(() => service[Symbol.asyncDispose]())

  test('every operation is 401 without it, and nothing is done', async () => {
    const wrong = [
      undefined,
      '',
      TOKEN,
      `Basic ${btoa(`x:${TOKEN}`)}`,
      'Bearer',
      'Bearer ',
      'Bearer x',
      `Bearer ${TOKEN}x`,
    ]
    const owner = new CheckedClient(service.url, { authorization: `Bearer ${TOKEN}` })
    const { id } = await owner.run({ '1': node('FakeSource') })
    const asset = await owner.uploaded('a.png', 'guarded')
    for (const [method, path] of [...operationsOn(id, asset.id), ...operationsOn(ID, ID)]) {
      for (const authorization of [
        ...wrong,
        `Bearer ${TOKEN.slice(0, -1)}`,
        `Token ${TOKEN}`,
        `Bearer ${TOKEN} ${TOKEN}`,
      ]) {
        const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
        const body = method === 'POST' ? WORKFLOW : undefined
        refused(await client.call(path, { method, headers, body }), 401, 'unauthorized')
      }
    }
    assert.equal((await client.call(`/api/v2/assets/by-hash/blake3:${'0'.repeat(64)}`, { method: 'HEAD' })).status, 401)
    assert.equal((await client.call(`/api/v2/jobs?token=${TOKEN}`)).status, 401)
    assert.equal(engine.runs.length, 1)
    assert.equal((await owner.call('/api/v2/jobs')).json.jobs.length, 1)
    assert.equal((await owner.call(`/api/v2/assets/${asset.id}`)).status, 200)
  })

  test('the right one passes, with the scheme in any case; health and OPTIONS need none', async () => {
    for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
      const headers = { authorization: `${scheme} ${TOKEN}` }
      assert.equal((await client.call('/api/v2/jobs', { method: 'POST', headers, body: WORKFLOW })).status, 201)
    }
    assert.equal((await client.call('/api/v2/health')).status, 200)
    assert.equal((await client.call('/api/v2/jobs', { method: 'OPTIONS' })).status, 204)
  })

  test('a 401 and a stream carry the CORS headers of an allowed origin', async () => {
    const denied = await client.call(`/api/v2/jobs/${ID}`, { headers: { origin: ALLOWED } })
    refused(denied, 401, 'unauthorized')
    assert.equal(denied.headers['access-control-allow-origin'], ALLOWED)
    assert.equal(denied.headers['access-control-allow-credentials'], 'true')
    const headers = { authorization: `Bearer ${TOKEN}` }
    const { json } = await client.call('/api/v2/jobs', { method: 'POST', headers, body: WORKFLOW })
    using reader = openEvents(service.url, json.urls.events, { Origin: ALLOWED, Authorization: `Bearer ${TOKEN}` })
    assert.ok((await reader.head).toLowerCase().includes(`access-control-allow-origin: ${ALLOWED}`))
  })
})

describe('without a token', () => {
  let service: TestApp
  let client: CheckedClient
  let host: string
  before(async () => {
    const settings = { corsOrigins: `${ALLOWED},http://localhost:5173` }
    service = await startTestApp({ settings, overrides: { engine: createFakeEngine() } })
    client = new CheckedClient(service.url)
    host = new URL(service.url).host
  })
  after(() => service[Symbol.asyncDispose]())

  const status = async (headers: Record<string, string>, path = '/api/v2/jobs') =>
    (await client.call(path, { headers })).status

  test('none is needed and any is ignored', async () => {
    for (const authorization of ['Bearer comfyui-abc', 'Basic eDp5', 'nonsense', 'Bearer'])
      assert.equal(await status({ authorization }), 200)
  })

  test('a request without an Origin or with a matching one passes, also where the port is dropped from Host', async () => {
    const { hostname } = new URL(service.url)
    for (const headers of [
      {},
      { origin: `http://${host}` },
      { origin: `http://${host}`, host: hostname },
      { 'sec-fetch-site': 'same-origin', origin: `http://${host}` },
      { 'sec-fetch-site': 'none' },
      { 'sec-fetch-mode': 'cors' },
    ] as Record<string, string>[]) {
      assert.equal(await status(headers), 200, JSON.stringify(headers))
    }
  })

  test('any other Origin, and whatever a page of another site sends, is 403 on every operation', async () => {
    const wrong: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'http://127.0.0.1:1' },
      // The page of whatever listens on the default port.
      { origin: `http://${new URL(service.url).hostname}` },
      { origin: `https://${new URL(service.url).hostname}` },
      { origin: `http://localhost:${new URL(service.url).port}` },
      { origin: 'null' },
      { origin: `${ALLOWED}.evil.example` },
      { origin: ALLOWED.replace('https', 'http') },
      { origin: `${ALLOWED}:8443` },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'cross-site', origin: `http://${host}` },
    ]
    const { id } = await client.run({ '1': node('FakeSource') })
    const asset = await client.uploaded('a.png', 'guarded')
    for (const headers of wrong) {
      for (const [method, path] of [...operationsOn(id, asset.id), ...operationsOn(ID, ID)]) {
        const answer = await client.call(path, { method, headers, body: method === 'POST' ? WORKFLOW : undefined })
        refused(answer, 403, 'forbidden_origin')
        assert.equal(answer.headers['access-control-allow-origin'], undefined)
      }
    }
    assert.equal((await client.call('/api/v2/jobs')).json.jobs.length, 1)
    assert.equal((await client.call(`/api/v2/assets/${asset.id}`)).status, 200)
  })

  test('a Host that is not ours is refused, also when the Origin is the same', async () => {
    const { id } = await client.run({ '1': node('FakeSource') })
    for (const name of [
      'evil.example',
      `evil.example:${new URL(service.url).port}`,
      '127.0.0.1.evil.example',
      '192.168.1.5',
    ]) {
      for (const origin of [undefined, `http://${name}`]) {
        const headers: Record<string, string> = { host: name, ...(origin !== undefined && { origin }) }
        refused(await client.call('/api/v2/jobs', { headers }), 403, 'forbidden')
        refused(await client.call('/api/v2/jobs', { method: 'POST', headers, body: WORKFLOW }), 403, 'forbidden')
        for (const path of ['/api/v2/health', `/api/v2/jobs/${id}`, `/api/v2/jobs/${id}/events`])
          refused(await client.call(path, { headers }), 403, 'forbidden')
      }
    }
    for (const name of ['localhost', `localhost:${new URL(service.url).port}`, '127.0.0.1:80', '[::1]', '127.9.9.9']) {
      assert.equal(await status({ host: name }), 200, name)
    }
  })

  test('an allowed origin is served and told so, on GET, POST and preflight; others get no CORS header', async () => {
    for (const origin of [ALLOWED, 'http://localhost:5173']) {
      for (const [method, body] of [['GET'], ['POST', WORKFLOW]]) {
        const headers = { origin, 'sec-fetch-site': 'cross-site' }
        const answer = await client.call('/api/v2/jobs', { method, headers, body })
        assert.ok(answer.status < 300, answer.text)
        assert.equal(answer.headers['access-control-allow-origin'], origin)
        assert.match(String(answer.headers['vary']), /origin/i)
        const exposed = String(answer.headers['access-control-expose-headers']).toLowerCase()
        for (const name of [
          'retry-after',
          'content-range',
          'accept-ranges',
          'x-service-request-id',
          'x-comfy-request-id',
        ])
          assert.ok(exposed.includes(name), `${name} is not exposed`)
      }
      const asked = {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'idempotency-key',
      }
      const preflight = await client.call('/api/v2/jobs', { method: 'OPTIONS', headers: asked })
      assert.deepEqual(
        [preflight.status, preflight.text, preflight.headers['access-control-allow-origin']],
        [204, '', origin],
      )
      const allowed = String(preflight.headers['access-control-allow-headers']).toLowerCase()
      for (const name of ['authorization', 'content-type', 'idempotency-key']) assert.ok(allowed.includes(name))
      assert.equal(preflight.headers['access-control-max-age'], '600')
    }
    const other = { origin: 'https://evil.example', 'access-control-request-method': 'POST' }
    const refusedPreflight = await call(service.url, '/api/v2/jobs', { method: 'OPTIONS', headers: other })
    assert.equal(refusedPreflight.status, 403)
    assert.ok(!Object.keys(refusedPreflight.headers).some((name) => name.startsWith('access-control-')))
    assert.equal((await client.call('/api/v2/jobs')).headers['access-control-allow-origin'], undefined)
  })
})
