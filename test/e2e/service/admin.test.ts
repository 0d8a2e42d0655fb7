/** The admin API through the whole service: every operation as its contract says, every change in the audit log. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { after, before, describe, test } from 'node:test'
import { startTestApp } from '../../support/app/start-app.ts'
import { ADMIN_TOKEN, type SharedApp, startShared } from '../../support/app/start-shared.ts'
import { type Answer, call } from '../../support/clients/call.ts'
import { openSpecChecks } from '../../support/clients/check-against-spec.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'

const { checkAgainstSpec } = openSpecChecks('admin.openapi.json')

let app: SharedApp
before(async () => {
  app = await startShared({ prices: '{"pools":{"*":{"perSecondMicros":1000,"minimumMicros":500,"holdMicros":2000}}}' })
})
after(() => app[Symbol.asyncDispose]())

/** Asks, and checks the answer against the contract. `template` is the path with `{id}`. */
async function ask(
  method: string,
  template: string,
  options: { id?: string; query?: string; body?: object } = {},
): Promise<Answer> {
  const { id = '', query = '', body } = options
  const answer = await app.admin(method, template.replace('{id}', id) + query, body)
  checkAgainstSpec(method, `/admin/v1${template}`, answer.status, answer.json)
  return answer
}

describe('access', () => {
  test('needs the admin token; everybody else gets the same answer', async () => {
    const { key } = await app.account('visitor')
    const tokens = [
      undefined,
      'Bearer ',
      `Bearer ${ADMIN_TOKEN}x`,
      `Basic ${ADMIN_TOKEN}`,
      `Bearer ${key}`,
      ADMIN_TOKEN,
    ]
    for (const authorization of tokens) {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
      const answer = await call(app.url, '/admin/v1/accounts', { headers })
      assert.equal(answer.status, 401, authorization)
      assert.equal(answer.headers['www-authenticate'], 'Bearer')
      assert.deepEqual(Object.keys(answer.json.error).sort(), ['field', 'message', 'request_id', 'type'])
      assert.equal(answer.json.error.request_id, answer.headers['x-service-request-id'])
    }
    assert.equal(
      (await call(app.url, '/api/v2/jobs', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).status,
      401,
    )
    assert.equal((await call(app.url, '/metrics', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })).status, 200)
  })

  test('is not there without a token in the configuration', async () => {
    await using own = await startShared({ adminToken: 'none' })
    assert.equal((await own.admin('GET', '/accounts')).status, 404)
  })

  test('shows its contract', async () => {
    const { json } = await app.admin('GET', '/openapi.json')
    assert.equal(json.servers[0].url, app.url)
    assert.ok(json.paths['/admin/v1/accounts'])
  })

  test('is open on the local kind without an admin token to whoever may use the service, and its contract says so', async () => {
    for (const [settings, key, needed] of [
      [{}, null, false],
      [{ token: 'of-the-service' }, 'of-the-service', true],
      [{ adminToken: 'of-the-operator' }, 'of-the-operator', true],
    ] as const) {
      await using local = await startTestApp({ settings, overrides: { engine: createFakeEngine() } })
      const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}` }
      const opened = await call(local.url, '/admin/v1/openapi.json', { headers })
      assert.equal(opened.status, 200, opened.text)
      const { security, paths } = opened.json
      const ways = paths['/admin/v1/overview'].get.security ?? security
      assert.equal((ways ?? []).length > 0, needed, JSON.stringify(settings))
      const bare = await call(local.url, '/admin/v1/overview')
      assert.equal(bare.status, needed ? 401 : 200)
    }
  })

  test('refuses what it does not understand, naming the field', async () => {
    const cases: [string, string, object | undefined, number, string | null][] = [
      ['POST', '/accounts', {}, 422, null],
      ['POST', '/accounts', { id: 'No' }, 422, 'id'],
      ['POST', '/accounts', { id: 'x', surprise: 1 }, 422, null],
      ['POST', '/accounts', { id: 'x', tier: 'gold' }, 422, 'tier'],
      ['POST', '/accounts', { id: 'x', limits: { streams: -1 } }, 422, 'limits.streams'],
      ['POST', '/accounts', { id: 'visitor' }, 422, 'id'],
      ['GET', '/accounts?limit=0', undefined, 400, null],
      ['GET', '/accounts?page=2', undefined, 400, null],
      ['GET', '/accounts/nobody', undefined, 404, null],
      ['PATCH', '/accounts/nobody', { tier: 'free' }, 404, null],
      ['POST', '/accounts/nobody/keys', {}, 404, null],
      ['POST', '/accounts/visitor/keys', { scopes: ['admin'] }, 422, 'scopes.0'],
      ['POST', '/accounts/visitor/keys', { scopes: [] }, 422, 'scopes'],
      ['POST', '/accounts/visitor/keys', { expires_at: '2001-01-01T00:00:00.000Z' }, 422, 'expires_at'],
      ['POST', '/accounts/visitor/keys', { expires_at: 'soon' }, 422, 'expires_at'],
      ['POST', '/accounts/visitor/grants', { micros: 5 }, 422, 'micros'],
      ['POST', '/keys/nothing/rotate', undefined, 404, null],
      ['POST', '/keys/nothing/revoke', undefined, 404, null],
      ['POST', '/refunds', { hold_id: 'job:none' }, 404, null],
      ['POST', '/deployments', { id: 'default' }, 422, 'id'],
      ['POST', '/deployments', { id: 'x', account_id: 'nobody' }, 422, 'account_id'],
      ['POST', '/deployments/nowhere/start', undefined, 404, null],
      ['GET', '/nothing', undefined, 404, null],
      ['DELETE', '/accounts/visitor', undefined, 405, null],
    ]
    for (const [method, where, body, status, field] of cases) {
      const { status: found, json, text } = await app.admin(method, where, body)
      assert.equal(found, status, `${method} ${where} ${text}`)
      assert.equal(json.error.field, field, `${method} ${where} ${text}`)
    }
    for (const [amount, field, said] of [
      [{ usd: 10 }, 'usd', /as a text, such as "12\.50"/],
      [{ usd: 12.5 }, 'usd', /as a text, such as "12\.50"/],
      [{ usd: '1,50' }, 'usd', /such as "12\.50"/],
      [{ usd: null }, 'usd', /as a text/],
      [{ micros: '5000000' }, 'micros', /whole number.*for dollars give usd, such as "12\.50"/],
      [{ micros: 1.5 }, 'micros', /whole number/],
      [{ amount: 10 }, null, /either micros or usd/],
      [{}, null, /either micros or usd/],
    ] as const) {
      const { status, json, text } = await app.admin('POST', '/accounts/visitor/grants', amount)
      assert.deepEqual([status, json.error.field], [422, field], text)
      assert.match(json.error.message, said)
    }
    const malformed = await call(app.url, '/admin/v1/accounts', {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN_TOKEN}` },
      body: '{',
    })
    assert.equal(malformed.status, 400)
  })
})

describe('accounts', () => {
  test('are made, listed page by page, shown and changed', async () => {
    const made = await ask('POST', '/accounts', {
      body: { id: 'acme', name: 'Acme Ltd', tier: 'standard', limits: { streams: 7 } },
    })
    assert.equal(made.status, 201)
    assert.deepEqual(
      [made.json.limits.concurrentJobs, made.json.limits.streams, made.json.balance.available_micros],
      [3, 7, 0],
    )
    await ask('POST', '/accounts', { body: { id: 'bcme' } })
    const first = await ask('GET', '/accounts', { query: '?limit=1' })
    const second = await ask('GET', '/accounts', { query: `?limit=1000&after=${first.json.next}` })
    const ids = [...first.json.accounts, ...second.json.accounts].map(({ id }: { id: string }) => id)
    assert.deepEqual(ids, [...ids].sort())
    assert.ok(ids.includes('acme') && ids.includes('bcme'))
    assert.equal(second.json.next, null)
    const changed = await ask('PATCH', '/accounts/{id}', {
      id: 'acme',
      body: { tier: 'pro', subscription_active: false },
    })
    const { tier, overrides, limits } = changed.json
    assert.deepEqual([tier, overrides], ['pro', { streams: 7, subscriptionActive: false }])
    assert.equal(limits.concurrentJobs, 5)
    assert.equal((await ask('GET', '/tiers')).json.tiers.length, 3)
  })

  test('that are suspended are refused at once, and let in again', async () => {
    const tenant = await app.account('naughty')
    await ask('PATCH', '/accounts/{id}', { id: 'naughty', body: { status: 'suspended' } })
    assert.equal((await tenant.call('/api/v2/jobs')).status, 403)
    await ask('PATCH', '/accounts/{id}', { id: 'naughty', body: { status: 'active' } })
    assert.equal((await tenant.call('/api/v2/jobs')).status, 200)
  })
})

describe('keys', () => {
  test('are shown once, rotate with an overlap, and end with their revocation', async () => {
    await app.account('holder')
    const made = await ask('POST', '/accounts/{id}/keys', { id: 'holder', body: { name: 'ci', scopes: ['jobs:read'] } })
    const { id, text } = made.json
    const asks = (key: string, method = 'GET') =>
      call(app.url, '/api/v2/jobs', { method, headers: { authorization: `Bearer ${key}` } })
    assert.equal((await asks(text)).status, 200)
    const forbidden = await asks(text, 'POST')
    assert.deepEqual([forbidden.status, forbidden.json.error.code], [403, 'forbidden'])
    const { json: list } = await ask('GET', '/accounts/{id}/keys', { id: 'holder' })
    assert.ok(list.keys.some((key: { id: string; text?: string }) => key.id === id && key.text === undefined))
    const rotated = await ask('POST', '/keys/{id}/rotate', { id, body: { overlap_seconds: 60 } })
    assert.notEqual(rotated.json.text, text)
    assert.deepEqual([(await asks(text)).status, (await asks(rotated.json.text)).status], [200, 200])
    const again = await ask('POST', '/keys/{id}/rotate', { id })
    assert.equal((await asks(rotated.json.text)).status, 401, 'without an overlap the old secret ends at once')
    assert.equal((await ask('POST', '/keys/{id}/revoke', { id })).status, 200)
    assert.equal((await asks(again.json.text)).status, 401)
    assert.equal((await ask('POST', '/keys/{id}/rotate', { id })).status, 404)
  })
})

describe('credits', () => {
  test('are granted, spent, refunded and taken back, and the books add up', async () => {
    const tenant = await app.account('payer', { creditFloorMicros: 0 })
    const body = JSON.stringify({ workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'paid' } } } })
    const poor = await tenant.call('/api/v2/jobs', { method: 'POST', body })
    assert.deepEqual([poor.status, poor.json.error.code], [402, 'insufficient_credits'])
    const granted = await ask('POST', '/accounts/{id}/grants', {
      id: 'payer',
      body: { usd: '0.01', memo: 'welcome', id: 'g1' },
    })
    assert.deepEqual([granted.json.outcome, granted.json.balance.available_micros], ['granted', 10_000])
    const repeated = await ask('POST', '/accounts/{id}/grants', { id: 'payer', body: { micros: 10_000, id: 'g1' } })
    assert.deepEqual([repeated.json.outcome, repeated.json.balance.available_micros], ['repeated', 10_000])
    const { json: job } = await tenant.call('/api/v2/jobs', { method: 'POST', body })
    await tenant.call(job.urls.events)
    const { json: paid } = await ask('GET', '/accounts/{id}', { id: 'payer' })
    const { charged_micros: charged } = paid.usage
    assert.ok(charged >= 500, String(charged))
    assert.equal(paid.balance.available_micros, 10_000 - charged)
    assert.deepEqual([paid.holds, paid.balance.held_micros], [[], 0])
    const refund = await ask('POST', '/refunds', { body: { hold_id: `job:${job.id}`, memo: 'our fault' } })
    assert.deepEqual([refund.json.outcome, refund.json.micros, refund.json.account_id], ['refunded', charged, 'payer'])
    const taken = await ask('POST', '/accounts/{id}/grants', { id: 'payer', body: { micros: -4000 } })
    assert.equal(taken.json.balance.available_micros, 6000)
    assert.equal((await ask('POST', '/accounts/{id}/grants', { id: 'payer', body: { micros: -6001 } })).status, 422)
    const { json: page } = await ask('GET', '/accounts/{id}/entries', { id: 'payer', query: '?limit=2' })
    const { json: rest } = await ask('GET', '/accounts/{id}/entries', { id: 'payer', query: `?before=${page.next}` })
    const entries = [...page.entries, ...rest.entries]
    assert.deepEqual(
      entries.map(({ kind }: { kind: string }) => kind),
      ['revoke', 'refund', 'settle', 'hold', 'grant'],
    )
    for (const entry of entries) {
      assert.equal(entry.granted_micros + entry.available_micros + entry.held_micros + entry.charged_micros, 0)
    }
    assert.deepEqual((await ask('GET', '/accounts/{id}/holds', { id: 'payer' })).json.holds, [])
    assert.deepEqual((await ask('GET', '/ledger/check')).json.faults, [])
    const usd = (micros: number) => (micros / 1_000_000).toFixed(6).replace(/0{1,4}$/, '')
    const statement = await ask('GET', '/accounts/{id}/statement', { id: 'payer' })
    const { opening_usd, added_usd, taken_back_usd, charged_usd, refunded_usd, closing_usd, lines } = statement.json
    assert.deepEqual([opening_usd, added_usd, taken_back_usd, closing_usd], ['0.00', '0.01', '0.004', '0.006'])
    assert.deepEqual([charged_usd, refunded_usd], [usd(charged), usd(charged)])
    assert.deepEqual(lines, [
      {
        ...{ kind: 'job', model: null, pool: 'default', endpoint: null },
        ...{ count: 1, charged_usd, refunded_usd },
      },
    ])
    const own = await tenant.call(`/api/v2/statement?month=${statement.json.month}`)
    assert.deepEqual(own.json, statement.json)
    const table = await tenant.call('/api/v2/statement', { headers: { accept: 'text/csv' } })
    assert.match(String(table.headers['content-type']), /^text\/csv/)
    assert.match(table.text, /^item,kind,model,pool,endpoint,count,usd\r\nopening balance,,,,,,0\.00\r\n/)
    for (const month of ['2026-13', 'now'])
      assert.equal((await tenant.call(`/api/v2/statement?month=${month}`)).status, 400, month)
    assert.equal((await tenant.call('/api/v2/statement?month=2099-01')).status, 404)
    assert.equal((await ask('GET', '/accounts/{id}/statement', { id: 'nobody' })).status, 404)
    await app.account('free', { creditFloorMicros: null })
    const unmetered = await ask('GET', '/accounts/{id}/statement', { id: 'free' })
    assert.deepEqual([unmetered.status, unmetered.json.error.type], [404, 'not_found'])
  })
})

describe('deployments', () => {
  test('are made, changed, stopped, started and counted in the overview', async () => {
    const made = await ask('POST', '/deployments', {
      body: { id: 'side', account_id: null, workers: 1, idle_after_ms: 5000 },
    })
    assert.deepEqual([made.status, made.json.path, made.json.host], [201, '/deployment/side', null])
    await app.untilDeployment('side', 'ready')
    assert.equal((await ask('PATCH', '/deployments/{id}', { id: 'side', body: { workers: 3 } })).json.workers, 3)
    assert.equal((await ask('GET', '/deployments')).json.deployments.length, 1)
    const { json } = await ask('GET', '/overview')
    assert.deepEqual(
      json.pools.map(({ pool }: { pool: string }) => pool),
      ['default', 'side'],
    )
    assert.equal(
      (await ask('POST', '/deployments/{id}/stop', { id: 'side', body: { now: true } })).json.state,
      'stopped',
    )
    assert.equal((await ask('POST', '/deployments/{id}/start', { id: 'side' })).json.state, 'provisioning')
    assert.equal((await ask('GET', '/deployments/{id}', { id: 'side' })).status, 200)
  })
})

describe('the audit log', () => {
  test('has every change, who asked and what for, newest first, and never a secret', async () => {
    const tenant = await app.account('watched')
    await ask('POST', '/accounts/{id}/grants', { id: 'watched', body: { micros: 1 } })
    await ask('PATCH', '/accounts/{id}', { id: 'watched', body: { name: 'Watched' } })
    const { json } = await ask('GET', '/audit', { query: '?subject=watched' })
    const seen = json.records.map(({ action, outcome }: { action: string; outcome: string }) => `${action} ${outcome}`)
    // The grant was refused: the account is not metered. That somebody tried is worth a line.
    assert.deepEqual(seen, ['account.update done', 'credits.grant unmetered', 'key.create done', 'account.create done'])
    assert.match(json.records[0].actor, /^admin token from 127\.0\.0\.1$/)
    assert.deepEqual(json.records[0].details, { name: 'Watched' })
    const { json: keys } = await ask('GET', '/accounts/{id}/keys', { id: 'watched' })
    assert.equal(json.records[2].details.key, keys.keys[0].id)
    const { json: first } = await ask('GET', '/audit', { query: '?limit=1' })
    const { json: second } = await ask('GET', '/audit', { query: `?limit=1&before=${first.next}` })
    assert.equal(second.records[0].seq, first.records[0].seq - 1)
    assert.ok(!JSON.stringify((await ask('GET', '/audit')).json).includes(tenant.key))
  })

  test('and nothing else on disk holds a key or the admin token', async () => {
    const { key } = await app.account('secretive')
    for (const file of filesBelow(app.service.dataDir)) {
      const bytes = readFileSync(file)
      assert.ok(!bytes.includes(key) && !bytes.includes(ADMIN_TOKEN), file)
    }
  })
})

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => path.join(folder, name))
    .filter((file) => statSync(file).isFile())
}

test('an operator sees the engines, and cordons, drains and resumes one, with a line in the audit log for each', async () => {
  await using shared = await startShared()
  const { engines } = (await shared.admin('GET', '/engines')).json
  assert.deepEqual(
    engines.map(({ id, state }: { id: string; state: string }) => [id, state]),
    [['embedded', 'ready']],
  )
  assert.deepEqual((await shared.admin('GET', '/engines/embedded')).json, engines[0])
  const { node_classes: classes } = (await shared.admin('GET', '/engine-catalog')).json
  assert.ok(Object.values(classes).every((ids) => JSON.stringify(ids) === '["embedded"]'))
  const states = []
  for (const word of ['cordon', 'resume', 'drain', 'resume']) {
    const answer = await shared.admin('POST', `/engines/embedded/${word}`)
    states.push(answer.json.state)
  }
  assert.deepEqual(
    states.map((state) => (state === 'draining' ? 'cordoned' : state)),
    ['cordoned', 'ready', 'cordoned', 'ready'],
  )
  const { records } = (await shared.admin('GET', '/audit?subject=embedded')).json
  assert.deepEqual(
    records.map(({ action }: { action: string }) => action),
    ['engine.resume', 'engine.drain', 'engine.resume', 'engine.cordon'],
  )
  assert.equal((await shared.admin('POST', '/engines/nobody/cordon')).status, 404)
})
