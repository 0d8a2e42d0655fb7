/** Who may ask: token, Host, Origin, CORS, proxies. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JOB_ID, makeJob, makeOutput } from '../support/app/memory-jobs.ts'
import { startSurface } from '../support/app/start-surface.ts'
import { type Answer, call } from '../support/clients/call.ts'
import { checkAgainstSpec } from '../support/clients/check-against-spec.ts'
import { openEvents } from '../support/clients/event-reader.ts'

const JOB = `/api/v2/jobs/${JOB_ID}`
const APP = 'http://app.example:5173'
const SUBMIT = { method: 'POST', body: '{"workflow":{}}' }

function code(answer: Answer): string {
  return answer.json.error.code
}

test('with a token, a missing, schemeless, Basic, empty or wrong one is 401 and no handler runs', async () => {
  await using service = await startSurface({ token: 'right token'.replace(' ', '-') })
  service.jobs.put(makeJob())
  const wrong = [
    undefined,
    'right-token',
    'Basic cmlnaHQ=',
    'Bearer',
    'Bearer ',
    'Bearer wrong',
    'Bearer right-token x',
  ]
  for (const authorization of wrong) {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
    for (const path of [
      JOB,
      `${JOB}/events`,
      `${JOB}/workflow`,
      `${JOB}/logs`,
      '/api/v2/jobs',
      '/api/v2/openapi.json',
    ]) {
      const answer = await call(service.url, path, { headers })
      assert.deepEqual([answer.status, code(answer)], [401, 'unauthorized'], `${path} with ${authorization}`)
      assert.equal(answer.headers['www-authenticate'], 'Bearer')
    }
    assert.equal((await call(service.url, '/api/v2/jobs', { ...SUBMIT, headers })).status, 401)
    assert.equal((await call(service.url, `${JOB}/cancel`, { method: 'POST', headers })).status, 401)
    assert.equal((await call(service.url, '/metrics', { headers })).status, 401)
  }
  const { find, watch, cancel } = service.jobs.calls
  assert.deepEqual([find, watch, cancel, service.jobs.submitted.length], [0, 0, 0, 0])
})

test('the right token passes in any spelling of the scheme; health, probes and OPTIONS need none', async () => {
  await using service = await startSurface({ token: 'right-token' })
  service.jobs.put(makeJob())
  for (const authorization of ['Bearer right-token', 'bearer right-token', 'BEARER  right-token']) {
    assert.equal((await call(service.url, JOB, { headers: { authorization } })).status, 200)
  }
  for (const path of ['/api/v2/health', '/healthz', '/readyz', '/docs']) {
    assert.equal((await call(service.url, path)).status, 200, path)
  }
  assert.equal((await call(service.url, JOB, { method: 'OPTIONS' })).status, 204)
})

test('without a token any bearer is ignored', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  for (const authorization of ['Bearer something', 'Basic x', 'nonsense']) {
    assert.equal((await call(service.url, JOB, { headers: { authorization } })).status, 200)
  }
})

test('browser requests: no Origin and a matching one pass, others and cross-site ones do not', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob())
  const { host, port } = new URL(service.url)
  const ask = async (headers: Record<string, string>) => (await call(service.url, JOB, { headers })).status
  assert.equal(await ask({}), 200)
  assert.equal(await ask({ 'sec-fetch-mode': 'cors' }), 200)
  assert.equal(await ask({ origin: `http://${host}` }), 200)
  assert.equal(await ask({ origin: `http://${host}`, 'sec-fetch-site': 'same-origin' }), 200)
  assert.equal(await ask({ origin: 'http://127.0.0.1' }), 403, 'the page of whatever listens on the default port')
  assert.equal(await ask({ host: 'localhost', origin: `http://localhost:${port}` }), 200)
  assert.equal(await ask({ origin: `http://${host}`, 'sec-fetch-site': 'cross-site' }), 403)
  assert.equal(await ask({ 'sec-fetch-site': 'cross-site' }), 403)
  for (const origin of [
    'http://evil.example',
    'http://127.0.0.1:1',
    `http://localhost:${port}`,
    'null',
    'file://',
    '',
  ]) {
    assert.equal(await ask({ origin }), 403, origin)
  }
  const refused = await call(service.url, JOB, { headers: { origin: 'http://evil.example' } })
  assert.equal(code(refused), 'forbidden_origin')
  checkAgainstSpec('GET', '/api/v2/jobs/{id}', 403, refused.json)
  const submit = await call(service.url, '/api/v2/jobs', { ...SUBMIT, headers: { origin: 'http://evil.example' } })
  assert.equal(submit.status, 403)
  assert.equal(service.jobs.submitted.length, 0)
})

test('a Host that is not ours is refused, also when it equals the Origin', async () => {
  await using service = await startSurface({ gate: { allowedHosts: ['atelier.test'] } })
  service.jobs.put(makeJob())
  const ask = (headers: Record<string, string>, path = JOB) => call(service.url, path, { headers })
  for (const host of ['127.0.0.1', 'localhost:1', '[::1]:8189', '127.9.9.9', 'LOCALHOST', 'atelier.test:99']) {
    assert.equal((await ask({ host })).status, 200, host)
  }
  for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.1', '0.0.0.0']) {
    for (const path of [JOB, `${JOB}/events`, '/api/v2/health', '/docs', '/']) {
      const answer = await ask({ host, origin: `http://${host}` }, path)
      assert.deepEqual([answer.status, code(answer)], [403, 'forbidden'], `${host}${path}`)
    }
  }
  for (const host of ['a b', 'http://x', 'user@localhost', 'localhost:99999999']) {
    assert.equal((await ask({ host })).status, 400, JSON.stringify(host))
  }
})

test('bound to every interface with a token, any name is ours; without one, only addresses and listed names', async () => {
  await using open = await startSurface({ token: 't', gate: { bindHost: '0.0.0.0' } })
  const authorization = 'Bearer t'
  assert.equal((await call(open.url, '/api/v2/jobs', { headers: { authorization, host: 'atelier:8189' } })).status, 200)
  await using listed = await startSurface({ token: 't', gate: { bindHost: '0.0.0.0', allowedHosts: ['a.test'] } })
  assert.equal((await call(listed.url, '/api/v2/jobs', { headers: { authorization, host: 'b.test' } })).status, 403)
  await using bare = await startSurface({ gate: { bindHost: '0.0.0.0' } })
  assert.equal((await call(bare.url, '/api/v2/jobs', { headers: { host: '10.1.2.3:8189' } })).status, 200)
  assert.equal((await call(bare.url, '/api/v2/jobs', { headers: { host: 'rebound.example' } })).status, 403)
})

test('an allow-listed origin is served on GET, POST, streams and preflight, with CORS headers, also on 401', async () => {
  await using service = await startSurface({ token: 't', gate: { corsOrigins: [APP] } })
  service.jobs.put(makeJob())
  const browser = { origin: APP, 'sec-fetch-site': 'cross-site' }
  const authorization = 'Bearer t'
  for (const answer of [
    await call(service.url, JOB, { headers: { ...browser, authorization } }),
    await call(service.url, '/api/v2/jobs', { ...SUBMIT, headers: { ...browser, authorization } }),
    await call(service.url, JOB, { headers: browser }),
    await call(service.url, '/nope', { headers: browser }),
  ]) {
    assert.equal(answer.headers['access-control-allow-origin'], APP)
    assert.equal(answer.headers['access-control-allow-credentials'], 'true')
    assert.equal(answer.headers['vary'], 'Origin')
    assert.equal(answer.headers['cross-origin-resource-policy'], 'cross-origin')
    const exposed = answer.headers['access-control-expose-headers'] ?? ''
    for (const name of [
      'Retry-After',
      'Content-Range',
      'Accept-Ranges',
      'X-Service-Request-Id',
      'X-Comfy-Request-Id',
    ]) {
      assert.ok(exposed.includes(name), name)
    }
  }
  using reader = openEvents(service.url, `${JOB}/events`, { Origin: APP, Authorization: authorization })
  assert.match(await reader.head, /Access-Control-Allow-Origin: http:\/\/app\.example:5173/)
  const preflight = await call(service.url, '/api/v2/jobs', {
    method: 'OPTIONS',
    headers: { ...browser, 'access-control-request-method': 'POST', 'access-control-request-headers': 'authorization' },
  })
  assert.equal(preflight.status, 204)
  assert.equal(preflight.headers['access-control-allow-origin'], APP)
  assert.equal(preflight.headers['access-control-max-age'], '600')
  for (const name of ['Authorization', 'Content-Type', 'Idempotency-Key']) {
    assert.ok(preflight.headers['access-control-allow-headers']?.includes(name))
  }
})

test('other origins get 403 without CORS headers, preflights too', async () => {
  await using service = await startSurface({ gate: { corsOrigins: [APP] } })
  service.jobs.put(makeJob())
  const headers = { origin: 'http://app.example:5174', 'access-control-request-method': 'POST' }
  for (const method of ['GET', 'OPTIONS']) {
    const answer = await call(service.url, JOB, { method, headers })
    assert.equal(answer.status, 403)
    assert.equal(answer.headers['access-control-allow-origin'], undefined)
    assert.equal(answer.headers['vary'], 'Origin')
  }
})

test('X-Forwarded-* cannot move links, unless it comes from a trusted proxy', async () => {
  const headers = {
    'x-forwarded-proto': 'https',
    'x-forwarded-host': 'public.test',
    'x-forwarded-prefix': '/deployment/7',
  }
  await using plain = await startSurface()
  plain.jobs.put(makeJob({ outputs: [makeOutput()] }))
  const unmoved = (await call(plain.url, JOB, { headers })).json
  assert.ok(unmoved.outputs[0].url.startsWith(`${plain.url}/api/v2/assets/`))
  assert.equal(unmoved.urls.self, JOB)

  const trustedProxies = [{ address: '127.0.0.0', prefixBits: 8, family: 'ipv4' as const }]
  await using behind = await startSurface({ gate: { trustedProxies, allowedHosts: ['public.test'] } })
  behind.jobs.put(makeJob({ outputs: [makeOutput()] }))
  const moved = (await call(behind.url, JOB, { headers })).json
  assert.ok(moved.outputs[0].url.startsWith('https://public.test/deployment/7/api/v2/assets/'))
  assert.equal(moved.urls.events, `/deployment/7${JOB}/events`)
  const odd = { ...headers, 'x-forwarded-prefix': '/a"b', 'x-forwarded-proto': 'javascript' }
  const kept = (await call(behind.url, JOB, { headers: odd })).json
  assert.ok(kept.outputs[0].url.startsWith('http://public.test/api/v2/assets/'))
})

test('links follow a mount prefix and a public address', async () => {
  await using service = await startSurface({
    gate: { mountPrefix: '/deployment/7', publicUrl: 'https://atelier.test' },
  })
  service.jobs.put(makeJob({ outputs: [makeOutput()] }))
  assert.equal((await call(service.url, JOB)).status, 404, 'only below the prefix')
  const { json } = await call(service.url, `/deployment/7${JOB}`)
  assert.equal(json.urls.cancel, `/deployment/7${JOB}/cancel`)
  assert.ok(json.outputs[0].url.startsWith('https://atelier.test/deployment/7/api/v2/assets/'))
  checkAgainstSpec('GET', '/api/v2/jobs/{id}', 200, json)
  const events = openEvents(service.url, `/deployment/7${JOB}/events`)
  assert.equal((await events.next())!.event, 'status')
  events[Symbol.dispose]()
  const spec = (await call(service.url, '/deployment/7/api/v2/openapi.json')).json
  assert.deepEqual(spec.servers, [{ url: 'https://atelier.test/deployment/7' }])
  assert.equal((await call(service.url, '/deployment/7/docs')).status, 200)
})

test('two callers that reach us under different names get links with their own', async () => {
  await using service = await startSurface()
  service.jobs.put(makeJob({ outputs: [makeOutput()] }))
  for (const host of ['localhost:7', '127.0.0.1:8', 'localhost:7']) {
    const { json } = await call(service.url, JOB, { headers: { host } })
    assert.ok(json.outputs[0].url.startsWith(`http://${host}/api/`), host)
  }
})
