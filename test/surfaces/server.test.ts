/** The listener itself: garbage, bounds, headers of every answer, and the end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { JOB_ID, makeJob } from '../support/app/memory-jobs.ts'
import { startSurface } from '../support/app/start-surface.ts'
import { call } from '../support/clients/call.ts'
import { sendRaw } from '../support/clients/raw-http.ts'
import { waitUntil } from '../support/wait-until.ts'

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

test('bytes that are not HTTP get a 400 in the envelope and the connection is closed', async () => {
  await using service = await startSurface()
  for (const bytes of [
    '\0\x01\x02garbage\r\n\r\n',
    'GET\r\n\r\n',
    'GET / HTTP/9.9\r\n\r\n',
    'GET / HTTP/1.1\r\nbad header\r\n\r\n',
  ]) {
    const answer = await sendRaw({ url: service.url, bytes, halfClose: false })
    assert.equal(answer?.status, 400, JSON.stringify(bytes))
    assert.equal(JSON.parse(answer.body).error.code, 'invalid_request')
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
    assert.match(answer.headers.get('x-service-request-id') ?? '', UUID)
  }
  assert.equal((await call(service.url, '/api/v2/health')).status, 200, 'the service lives on')
})

test('too large headers, too long URLs, a missing Host and absolute targets are 400', async () => {
  await using service = await startSurface()
  const host = `Host: ${new URL(service.url).host}\r\n`
  for (const bytes of [
    `GET /api/v2/health HTTP/1.1\r\n${host}X-Big: ${'a'.repeat(40_000)}\r\n\r\n`,
    `GET /api/v2/jobs?x=${'a'.repeat(25_000)} HTTP/1.1\r\n${host}\r\n`,
    'GET /api/v2/health HTTP/1.1\r\n\r\n',
    `GET http://evil.example/api/v2/health HTTP/1.1\r\n${host}\r\n`,
  ]) {
    const answer = await sendRaw({
      url: service.url,
      bytes: bytes.replace(/\r\n\r\n$/, '\r\nConnection: close\r\n\r\n'),
      halfClose: false,
    })
    assert.equal(answer?.status, 400, bytes.slice(0, 60))
    assert.equal(JSON.parse(answer.body).error.code, 'invalid_request')
  }
})

test('every answer carries a fresh request id under both names and the security headers', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  const ids = new Set<string>()
  const calls: [string, string, number][] = [
    ['GET', '/api/v2/health', 200],
    ['GET', `/api/v2/jobs/${JOB_ID}`, 200],
    ['HEAD', `/api/v2/jobs/${JOB_ID}`, 200],
    ['GET', `/api/v2/jobs/${JOB_ID}/logs`, 204],
    ['GET', '/api/v2/jobs/%zz', 404],
    ['GET', '/nope', 404],
    ['OPTIONS', '/api/v2/jobs', 204],
    ['GET', '/docs', 200],
    ['GET', '/healthz', 200],
  ]
  for (const [method, path, status] of calls) {
    const headers = { 'x-service-request-id': 'from-outside', 'x-request-id': 'from-outside' }
    const answer = await call(service.url, path, { method, headers })
    assert.equal(answer.status, status, `${method} ${path}`)
    const id = String(answer.headers['x-service-request-id'])
    assert.match(id, UUID)
    assert.equal(answer.headers['x-comfy-request-id'], id)
    ids.add(id)
    assert.equal(answer.headers['x-content-type-options'], 'nosniff', path)
    assert.equal(answer.headers['x-frame-options'], 'DENY', path)
    assert.equal(answer.headers['referrer-policy'], 'no-referrer', path)
    assert.equal(answer.headers['cross-origin-resource-policy'], 'same-origin', path)
    assert.match(String(answer.headers['content-security-policy']), /default-src 'none'.*frame-ancestors 'none'/, path)
    assert.equal(answer.headers['cache-control'], 'no-store', path)
    assert.equal(answer.headers['x-powered-by'], undefined)
  }
  assert.equal(ids.size, calls.length)
})

test('other brands rename the headers, the accepted extra_data and the served contract', async () => {
  await using service = await startSurface({ gate: { brands: ['Acme'] } })
  const answer = await call(service.url, '/api/v2/health')
  assert.match(String(answer.headers['x-acme-request-id']), UUID)
  assert.equal(answer.headers['x-service-request-id'], undefined)
  const submit = (extra_data: object) =>
    call(service.url, '/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow: {}, extra_data }) })
  assert.equal((await submit({ api_key_acme_org: 'x' })).status, 201)
  assert.equal((await submit({ api_key_comfy_org: 'x' })).status, 400)
  const spec = await call(service.url, '/api/v2/openapi.json')
  assert.match(spec.text, /X-Acme-Request-Id/)
  assert.doesNotMatch(spec.text, /X-Comfy-|X-Service-|_service_org/)
})

test('an unknown address is 404, and a wrong method 405, where Allow tells what exists', async () => {
  await using service = await startSurface()
  const unknown = await call(service.url, '/api/v2/nothing')
  assert.deepEqual([unknown.status, unknown.json.error.code, unknown.headers.allow], [404, 'not_found', undefined])
  for (const [method, path, allow] of [
    ['DELETE', `/api/v2/jobs/${JOB_ID}`, 'GET, HEAD, PATCH'],
    ['PUT', '/api/v2/jobs', 'GET, HEAD, POST'],
    ['GET', `/api/v2/jobs/${JOB_ID}/cancel`, 'POST'],
    ['HEAD', `/api/v2/jobs/${JOB_ID}/events`, 'GET'],
    ['POST', '/docs', 'GET, HEAD'],
    ['GET', '/api/v2/assets/from-hash', 'POST'],
    ['DELETE', '/api/v2/assets/from-hash', 'POST'],
  ]) {
    const answer = await call(service.url, path, { method })
    assert.equal(answer.status, 405, `${method} ${path}`)
    if (method !== 'HEAD') assert.equal(answer.json.error.code, 'invalid_request')
    assert.equal(answer.headers.allow, allow, `${method} ${path}`)
  }
})

test('an early refusal reaches a sender that is still sending', async () => {
  await using service = await startSurface({ api: { maxBodyBytes: 1000 } })
  const body = Buffer.alloc(8 * 1024 * 1024, 0x20)
  for (let round = 0; round < 10; round++) {
    const answer = await call(service.url, '/api/v2/jobs', { method: 'POST', body })
    assert.equal(answer.status, 413)
  }
})

test('readiness names the parts that it does without, and stays ready', async () => {
  await using service = await startSurface({ degraded: ['bus'] })
  const ready = await call(service.url, '/readyz')
  assert.equal(ready.status, 200)
  assert.deepEqual(ready.json, { status: 'ready', reason: null, role: 'all', degraded: ['bus'] })
})

test('readiness tells why not, liveness stays', async () => {
  await using service = await startSurface({ notReadyReason: 'the engine is starting' })
  const ready = await call(service.url, '/readyz')
  assert.deepEqual([ready.status, ready.json.reason], [503, 'the engine is starting'])
  assert.equal((await call(service.url, '/healthz')).status, 200)
  assert.match((await call(service.url, '/metrics')).text, /atelier_up 1/)
})

test('a silent connection in the middle of a request is closed', async () => {
  await using service = await startSurface({ server: { idleMs: 60 } })
  const bytes = `POST /api/v2/jobs HTTP/1.1\r\nHost: ${new URL(service.url).host}\r\nContent-Length: 100\r\n\r\n{`
  assert.equal(await sendRaw({ url: service.url, bytes, halfClose: false }), null)
})

test('closing lets what is under way finish, idle connections go and no new ones come; a second call is harmless', async () => {
  const service = await startSurface()
  service.jobs.put(makeJob())
  const { promise, resolve } = Promise.withResolvers<void>()
  Object.assign(service.jobs.switches, { isCached: false, hold: promise })
  const idle = connect({ port: service.server.port, host: '127.0.0.1' })
  await once(idle, 'connect')
  const underWay = call(service.url, `/api/v2/jobs/${JOB_ID}`)
  await waitUntil(() => service.jobs.calls.find !== 0)
  const closing = service.server.close()
  assert.equal(service.server.close(), closing)
  await once(idle, 'close')
  await assert.rejects(call(service.url, '/api/v2/health'), { code: 'ECONNREFUSED' })
  resolve()
  assert.equal((await underWay).status, 200)
  await closing
})

test('closing waits no longer than it was told to', async () => {
  const service = await startSurface({ server: { drainMs: 50 } })
  Object.assign(service.jobs.switches, { isCached: false, hold: new Promise(() => {}) })
  const stuck = assert.rejects(call(service.url, `/api/v2/jobs/${JOB_ID}`))
  await waitUntil(() => service.jobs.calls.find !== 0)
  await service.server.close()
  await stuck
})

test('below a mount prefix health is mounted, and what an operator asks lies at the root', async () => {
  await using service = await startSurface({ gate: { mountPrefix: '/x' } })
  for (const [path, status] of [
    ['/x/api/v2/health', 200],
    ['/api/v2/health', 404],
    ['/healthz', 200],
    ['/readyz', 200],
    ['/x/readyz', 404],
  ] as const) {
    assert.equal((await call(service.url, path)).status, status, path)
  }
})
