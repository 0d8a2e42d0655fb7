/** Which requests a session's cookie lets in: a table of credential, origin, method and header. No browser: every header is forged here. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ADMIN_TOKEN, type SharedApp, startShared, type Tenant } from '../support/app/start-shared.ts'
import { call } from '../support/clients/call.ts'
import { createFixedClock } from '../support/fixed-clock.ts'

const HOUR_MS = 3_600_000
const READ = '/api/v2/jobs'
const CANCEL = '/api/v2/jobs/00000000-0000-7000-8000-000000000000/cancel'

async function signIn(url: string, credential: string): Promise<string> {
  const answer = await call(url, '/console/v1/session', { method: 'POST', body: JSON.stringify({ credential }) })
  assert.equal(answer.status, 200, answer.text)
  return String(answer.headers['set-cookie']).split(';')[0]
}

describe('the cookie of a session', () => {
  let shared: SharedApp
  let tenant: Tenant
  let cookie: string
  let own: string
  before(async () => {
    shared = await startShared()
    tenant = await shared.account('one')
    cookie = await signIn(shared.url, tenant.key)
    own = new URL(shared.url).origin
  })
  after(() => shared[Symbol.asyncDispose]())

  const mark = { 'x-atelier-console': '1' }
  const same = { 'sec-fetch-site': 'same-origin' }
  const rows = (): readonly (readonly [
    what: string,
    method: string,
    headers: Record<string, string>,
    isLetIn: boolean,
  ])[] => [
    ['a read of our own page', 'GET', { ...same }, true],
    ['a read that no browser marks, on plain http', 'GET', {}, true],
    ['a read of our own page with its origin', 'GET', { origin: own }, true],
    ['a read of a page on another port of this host', 'GET', { 'sec-fetch-site': 'same-site' }, false],
    ['a read that a person typed', 'GET', { 'sec-fetch-site': 'none' }, false],
    ['a change of our own page', 'POST', { ...same, ...mark, origin: own }, true],
    ['a change where the browser does not say whose page it is', 'POST', { ...mark, origin: own }, true],
    ['a change without the mark', 'POST', { ...same, origin: own }, false],
    ['a change without an origin', 'POST', { ...same, ...mark }, false],
    ['a change of another port of this host', 'POST', { ...mark, 'sec-fetch-site': 'same-site', origin: own }, false],
  ]

  test('counts for requests of our own page and for no others', async () => {
    for (const [what, method, headers, isLetIn] of rows()) {
      const { status, json } = await call(shared.url, method === 'GET' ? READ : CANCEL, {
        method,
        headers: { cookie, ...headers },
      })
      // The job does not exist: whoever is let in is told so.
      const expected = isLetIn ? (method === 'GET' ? 200 : 404) : 401
      assert.equal(status, expected, `${what}: ${JSON.stringify(json)}`)
    }
  })

  test('is never looked at where a credential is shown, good or bad', async () => {
    for (const [name, value] of [
      ['authorization', 'Bearer nonsense'],
      ['authorization', 'Basic x'],
      ['x-api-key', 'nonsense'],
    ]) {
      assert.equal((await call(shared.url, READ, { headers: { cookie, ...same, [name]: value } })).status, 401)
    }
    const other = await shared.account('two')
    const answer = await call(shared.url, '/console/v1/session', {
      headers: { cookie, ...same, authorization: `Bearer ${other.key}` },
    })
    assert.equal(answer.json.account.id, 'two')
  })

  test('of an account never opens the administration, and that of the operator opens nothing else', async () => {
    const operator = await signIn(shared.url, ADMIN_TOKEN)
    assert.match(operator, /^atelier-operator=/)
    assert.equal((await call(shared.url, '/admin/v1/overview', { headers: { cookie, ...same } })).status, 401)
    assert.equal((await call(shared.url, '/admin/v1/overview', { headers: { cookie: operator, ...same } })).status, 200)
    assert.equal((await call(shared.url, READ, { headers: { cookie: operator, ...same } })).status, 401)
    const renamed = operator.replace('atelier-operator=', 'atelier=')
    assert.equal((await call(shared.url, READ, { headers: { cookie: renamed, ...same } })).status, 401)
  })

  test('is worth nothing once its key is revoked, or its account suspended', async () => {
    const third = await shared.account('three')
    const held = await signIn(shared.url, third.key)
    assert.equal((await call(shared.url, READ, { headers: { cookie: held, ...same } })).status, 200)
    const { json } = await shared.admin('GET', '/accounts/three/keys')
    assert.equal((await shared.admin('POST', `/keys/${json.keys[0].id}/revoke`)).status, 200)
    assert.equal((await call(shared.url, READ, { headers: { cookie: held, ...same } })).status, 401)
    const fourth = await shared.account('four')
    const suspended = await signIn(shared.url, fourth.key)
    await shared.admin('PATCH', '/accounts/four', { status: 'suspended' })
    assert.equal((await call(shared.url, READ, { headers: { cookie: suspended, ...same } })).status, 401)
  })
})

test('a session ends after twelve hours without a sign of life, an operator’s after half an hour, every one after seven days', async () => {
  const clock = createFixedClock()
  await using shared = await startShared({}, { overrides: { clock } })
  const tenant = await shared.account('one')
  const same = { 'sec-fetch-site': 'same-origin' }
  let cookie = await signIn(shared.url, tenant.key)
  const operator = await signIn(shared.url, ADMIN_TOKEN)
  clock.advance(0.5 * HOUR_MS)
  assert.equal((await call(shared.url, '/admin/v1/overview', { headers: { cookie: operator, ...same } })).status, 401)
  const stale = cookie
  for (let hours = 0; hours < 7 * 24 - 11; hours += 11) {
    clock.advance(11 * HOUR_MS)
    const answer = await call(shared.url, '/console/v1/session', { headers: { cookie, ...same } })
    if (!answer.json.signed_in) break
    cookie = String(answer.headers['set-cookie']).split(';')[0]
  }
  assert.equal((await call(shared.url, READ, { headers: { cookie: stale, ...same } })).status, 401)
  assert.equal((await call(shared.url, READ, { headers: { cookie, ...same } })).status, 200)
  clock.advance(11.9 * HOUR_MS)
  assert.equal((await call(shared.url, READ, { headers: { cookie, ...same } })).status, 401, 'seven days are over')
})

test('an address has ten tries a minute to sign in, and every refusal reads the same', async () => {
  const clock = createFixedClock()
  await using shared = await startShared({}, { overrides: { clock } })
  const tenant = await shared.account('one')
  await shared.admin('PATCH', '/accounts/one', { status: 'suspended' })
  const attempt = (credential: string) =>
    call(shared.url, '/console/v1/session', { method: 'POST', body: JSON.stringify({ credential }) })
  const refusals = await Promise.all(['x', 'atl_nonsense', tenant.key, 'a.b.c'].map(attempt))
  assert.deepEqual(new Set(refusals.map(({ status, text }) => `${status} ${text}`)).size, 1)
  for (let tried = 4; tried < 10; tried++) assert.equal((await attempt('x')).status, 401)
  const late = await attempt(ADMIN_TOKEN)
  assert.equal(late.status, 429)
  assert.equal(late.headers['retry-after'], '60')
  clock.advance(60_000)
  assert.equal((await attempt(ADMIN_TOKEN)).status, 200)
})

test('over https the cookie is bound to the host', async () => {
  await using shared = await startShared({ publicUrl: 'https://console.example.com' })
  const tenant = await shared.account('one')
  const answer = await call(shared.url, '/console/v1/session', {
    method: 'POST',
    body: JSON.stringify({ credential: tenant.key }),
  })
  assert.match(String(answer.headers['set-cookie']), /^__Host-atelier=\S+; Path=\/; HttpOnly; SameSite=Strict; Secure$/)
})
