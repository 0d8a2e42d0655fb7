/** What an account may use, as its clients see it: each limit with its own refusal, and nobody else's limit. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { createFixedClock } from '../../support/fixed-clock.ts'
import { waitUntil } from '../../support/wait-until.ts'

const WORKFLOW = { '1': { class_type: 'FakeSource', inputs: {} } }
const GATED = { '1': { class_type: 'FakeGate', inputs: {} } }
const NOBODY = '00000000-0000-7000-8000-000000000000'

function submit(tenant: Tenant, headers: Record<string, string> = {}, workflow: object = WORKFLOW) {
  return tenant.call('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow }), headers })
}

async function ended(tenant: Tenant, id: string): Promise<string> {
  const events = await tenant.call(`/api/v2/jobs/${id}/events`)
  assert.equal(events.status, 200)
  return (await tenant.call(`/api/v2/jobs/${id}`)).json.status as string
}

async function grant(app: SharedApp, account: string, micros: number): Promise<void> {
  const { status, text } = await app.admin('POST', `/accounts/${account}/grants`, { micros, memo: 'a gift' })
  assert.ok(status < 300, text)
}

describe('credits', () => {
  const PRICES = JSON.stringify({ pools: { '*': { perSecondMicros: 1000, minimumMicros: 700, holdMicros: 1000 } } })

  test('without enough of them a submit is refused with 402, and its key stays free', async () => {
    await using app = await startShared({ prices: PRICES })
    const tenant = await app.account('acme', { creditFloorMicros: 0 })
    const refused = await submit(tenant, { 'idempotency-key': 'k' })
    assert.deepEqual([refused.status, refused.json.error.code], [402, 'insufficient_credits'])
    await grant(app, 'acme', 1000)
    const accepted = await submit(tenant, { 'idempotency-key': 'k' }, GATED)
    assert.equal(accepted.status, 201)
    assert.deepEqual((await app.service.app.store.ledger.balance('acme'))?.held, 1000)
    const again = await submit(tenant, { 'idempotency-key': 'k' })
    assert.deepEqual([again.status, again.json.error.code], [422, 'idempotency_key_reuse'], 'not 402: it was accepted')
    app.engine.openGate()
    assert.equal(await ended(tenant, accepted.json.id), 'succeeded')
    const balance = await app.service.app.store.ledger.balance('acme')
    assert.ok(balance !== null && balance.held === 0 && balance.available <= 300 && balance.available >= 0)
    assert.deepEqual((await app.service.app.store.ledger.check()).faults, [])
  })

  test('a run costs its milliseconds to the micro-dollar', async () => {
    const clock = createFixedClock()
    const prices = JSON.stringify({ pools: { '*': { perSecondMicros: 95_000, holdMicros: 900_000 } } })
    await using app = await startShared({ prices }, { overrides: { clock } })
    const tenant = await app.account('acme', { creditFloorMicros: 0 })
    await grant(app, 'acme', 1_000_000)
    const { id } = (await submit(tenant, {}, GATED)).json
    await waitUntil(async () => (await tenant.call(`/api/v2/jobs/${id}`)).json.status === 'running')
    clock.advance(9066)
    app.engine.openGate()
    assert.equal(await ended(tenant, id), 'succeeded')
    assert.equal((await app.service.app.store.ledger.balance('acme'))?.available, 1_000_000 - 861_270)
  })

  test('an account that is not metered runs for nothing', async () => {
    await using app = await startShared({ prices: PRICES })
    const tenant = await app.account('acme')
    assert.equal(await ended(tenant, (await submit(tenant)).json.id), 'succeeded')
    assert.equal((await app.service.app.store.ledger.check()).entries, 0)
  })
})

describe('the rate of requests', () => {
  test('is refused with whole seconds, with the same answer for every id, and before anything is read', async () => {
    const clock = createFixedClock()
    await using app = await startShared({}, { overrides: { clock } })
    const tenant = await app.account('acme', { requestsPerMinute: 30, requestBurst: 3 })
    const other = await app.account('other')
    const { id } = (await submit(tenant)).json
    const foreign = (await submit(other)).json.id as string
    for (let count = 0; count < 2; count++) assert.equal((await tenant.call(`/api/v2/jobs/${id}`)).status, 200)
    const paths = [
      `/jobs/${id}`,
      `/jobs/${foreign}`,
      `/jobs/${NOBODY}`,
      '/jobs/nonsense',
      `/jobs/${id}/events`,
      '/jobs',
    ]
    const answers = await Promise.all(paths.map((path) => tenant.call(`/api/v2${path}`)))
    for (const { status, headers, json } of answers) {
      assert.deepEqual([status, json.error.code, headers['retry-after']], [429, 'rate_limited', '2'])
    }
    assert.equal(new Set(answers.map(({ text }) => text)).size, 1)
    const broken = await tenant.call('/api/v2/jobs', { method: 'POST', body: 'no json' })
    assert.equal(broken.status, 429)
    assert.equal((await other.call(`/api/v2/jobs/${foreign}`)).status, 200, 'another account has its own')
    clock.advance(2000)
    assert.equal((await tenant.call(`/api/v2/jobs/${NOBODY}`)).status, 404)
    assert.equal((await tenant.call(`/api/v2/jobs/${NOBODY}`)).status, 429)
  })

  test('counts each request once, whichever way it takes', async () => {
    const clock = createFixedClock()
    await using app = await startShared({}, { overrides: { clock } })
    const tenant = await app.account('acme', { requestsPerMinute: 1, requestBurst: 10 })
    const { id } = (await submit(tenant)).json
    const paths = [`/jobs/${id}`, `/jobs/${id}`, `/jobs/${NOBODY}`, `/jobs/${id}?x`, '/jobs', `/jobs/${NOBODY}/events`]
    for (const path of paths) assert.notEqual((await tenant.call(`/api/v2${path}`)).status, 429, path)
    const left = await Promise.all(Array.from({ length: 9 }, () => tenant.call(`/api/v2/jobs/${NOBODY}`)))
    assert.equal(left.filter(({ status }) => status === 404).length, 10 - 1 - paths.length)
  })
})

describe('further limits', () => {
  test('jobs beyond the concurrency wait by themselves; beyond the queue they are refused', async () => {
    await using app = await startShared({ workers: '4' })
    const tenant = await app.account('acme', { concurrentJobs: 1, queuedJobs: 2 })
    const first = (await submit(tenant, {}, GATED)).json.id as string
    await app.engine.untilRuns(1)
    const later = [(await submit(tenant)).json.id, (await submit(tenant)).json.id] as string[]
    const full = await submit(tenant)
    assert.deepEqual([full.status, full.json.error.code], [429, 'queue_full'])
    assert.ok(Number(full.headers['retry-after']) >= 1)
    const use = await app.service.app.store.accounts.findUse('acme')
    assert.deepEqual(use, { running: 1, queued: 2 })
    app.engine.openGate()
    for (const id of [first, ...later]) assert.equal(await ended(tenant, id), 'succeeded')
  })

  test('an inactive subscription runs nothing and still reads', async () => {
    await using app = await startShared()
    const tenant = await app.account('acme')
    const { id } = (await submit(tenant)).json
    await app.admin('PATCH', '/accounts/acme', { limits: { subscriptionActive: false } })
    const refused = await submit(tenant)
    assert.deepEqual([refused.status, refused.json.error.code], [403, 'forbidden'])
    assert.match(refused.json.error.message, /subscription/)
    assert.equal((await tenant.call(`/api/v2/jobs/${id}`)).status, 200)
  })

  test('a job that waited when its subscription lapsed ends with the word of each API, uncharged', async () => {
    const PRICES = JSON.stringify({ pools: { '*': { perSecondMicros: 1000, minimumMicros: 700, holdMicros: 1000 } } })
    await using app = await startShared({ prices: PRICES })
    const tenant = await app.account('acme', { creditFloorMicros: -5000, concurrentJobs: 1 })
    const running = (await submit(tenant, {}, GATED)).json.id as string
    const v2 = (await submit(tenant)).json.id as string
    const prompt = JSON.stringify({ prompt: { '1': { class_type: 'FakeSave', inputs: {} } } })
    const v1 = (await tenant.call('/api/prompt', { method: 'POST', body: prompt })).json.prompt_id as string
    await waitUntil(() => app.engine.runs.length !== 0)
    await app.admin('PATCH', '/accounts/acme', { subscription_active: false })
    app.engine.openGate()
    assert.equal(await ended(tenant, running), 'succeeded', 'what runs, runs on')
    for (const id of [v2, v1]) {
      assert.equal(await ended(tenant, id), 'failed')
      const { error } = (await tenant.call(`/api/v2/jobs/${id}`)).json
      assert.equal(error.code, 'subscription_inactive')
      assert.match(error.message, /no active subscription/)
    }
    const { execution_error } = (await tenant.call(`/api/jobs/${v1}`)).json
    assert.equal(execution_error.exception_type, 'InactiveSubscriptionError')
    const { status } = (await tenant.call(`/api/history/${v1}`)).json[v1]
    assert.deepEqual(status.messages.at(-1)[1].exception_type, 'InactiveSubscriptionError')
    assert.equal(app.engine.runs.length, 1)
    const balance = await app.service.app.store.ledger.balance('acme')
    assert.equal(balance?.held, 0)
    const charges = await app.service.app.store.ledger.entries('acme', { limit: 10, before: null, kinds: ['settle'] })
    assert.equal(charges.length, 1)
  })

  test('node classes that an account may not use are named node by node', async () => {
    await using app = await startShared()
    const denied = await app.account('denied', { denyNodes: ['FakeSource'] })
    const allowed = await app.account('allowed', { allowNodes: ['FakeSource'] })
    const refused = await submit(denied)
    assert.deepEqual([refused.status, refused.json.error.code], [422, 'invalid_workflow'])
    const [error] = refused.json.error.details.node_errors['1']
    assert.deepEqual([error.field, error.reason], ['class_type', 'node_not_allowed'])
    assert.match(error.message, /"FakeSource"/)
    assert.equal((await submit(allowed)).status, 201)
    const mixed = { ...WORKFLOW, '2': { class_type: 'FakeValue', inputs: {} } }
    const other = await submit(allowed, {}, mixed)
    assert.deepEqual(Object.keys(other.json.error.details.node_errors), ['2'])
  })

  test('uploads have the size of the account', async () => {
    await using app = await startShared()
    const tenant = await app.account('acme', { uploadBytes: 10 })
    const upload = async (size: number) => {
      const form = new FormData()
      form.set('content_type', 'text/plain')
      form.set('file_path', 'a.txt')
      form.set('file', new Blob(['x'.repeat(size)]), 'a.txt')
      const sent = new Response(form)
      const headers = { 'content-type': sent.headers.get('content-type') ?? '' }
      return tenant.call('/api/v2/assets', { method: 'POST', body: new Uint8Array(await sent.arrayBuffer()), headers })
    }
    assert.equal((await upload(10)).status, 201)
    const refused = await upload(11)
    assert.deepEqual([refused.status, refused.json.error.details], [413, { max_bytes: 10 }])
  })

  test('streams have the number of the account', async () => {
    await using app = await startShared()
    const tenant = await app.account('acme', { streams: 0 })
    const refused = await tenant.call(`/api/v2/jobs/${NOBODY}/events`)
    assert.deepEqual([refused.status, refused.json.error.code], [429, 'too_many_streams'])
  })

  test('an operation without the scope for it is forbidden, with the same answer for every id', async () => {
    await using app = await startShared()
    const tenant = await app.account('acme')
    const { id } = (await submit(tenant)).json
    const made = await app.admin('POST', '/accounts/acme/keys', { scopes: ['jobs:read'] })
    const headers = { authorization: `Bearer ${made.json.text}` }
    assert.equal((await tenant.call(`/api/v2/jobs/${id}`, { headers })).status, 200)
    const paths = [`/jobs/${id}/cancel`, `/jobs/${NOBODY}/cancel`, '/jobs', '/assets']
    for (const path of paths) {
      const { status, json } = await tenant.call(`/api/v2${path}`, { method: 'POST', headers, body: '{}' })
      assert.deepEqual([status, json.error.code], [403, 'forbidden'], path)
    }
    assert.equal((await tenant.call(`/api/v2/assets/${NOBODY}`, { headers })).status, 403)
  })
})
