/** Who may run which model, on every way to run one: the router's own routes, and workflows over both job APIs. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { PRICE } from '../../support/app/start-router.ts'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import type { CallOptions } from '../../support/clients/call.ts'
import { node } from '../../support/clients/checked-client.ts'
import { createFakeProvider, done, fakeModel, gate } from '../../support/providers/fake-provider.ts'
import { waitUntil } from '../../support/wait-until.ts'

const JOB_SCOPES = ['jobs:read', 'jobs:write', 'assets:read', 'assets:write']
const MODELS = [
  fakeModel('fake/direct'),
  fakeModel('fake/paid', { price: PRICE }),
  fakeModel('other/one'),
  fakeModel('fake/special', { entitlement: 'special' }),
]

function runGraph(model: unknown, prompt = 'x') {
  const run = node('RunModel', { model, input: JSON.stringify({ prompt }) })
  return { '1': run, '2': node('PreviewAny', { source: ['1', 0] }) }
}

describe('models', () => {
  const provider = createFakeProvider()
  const other = createFakeProvider({ name: 'other' })
  let app: SharedApp

  before(async () => {
    const models = { providers: [provider, other], models: MODELS }
    app = await startShared({ workers: '1' }, { overrides: { engine: undefined, models } })
  })
  after(() => app[Symbol.asyncDispose]())

  async function keyOf(accountId: string, scopes: readonly string[] | null) {
    const { json } = await app.admin('POST', `/accounts/${accountId}/keys`, { scopes })
    return { id: json.key?.id ?? json.id, text: json.text as string }
  }

  const withKey =
    (tenant: Tenant, key: string) =>
    (path: string, options: CallOptions = {}) =>
      tenant.call(path, {
        ...options,
        headers: { 'x-api-key': key, authorization: `Bearer ${key}`, ...options.headers },
      })

  const submits = (call: Tenant['call']) => ({
    v2: (workflow: object, extra_data: object = {}) =>
      call('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow, extra_data }) }),
    v1: (prompt: object, extra_data: object = {}) =>
      call('/api/prompt', { method: 'POST', body: JSON.stringify({ prompt, extra_data }) }),
  })

  async function ended(tenant: Tenant, id: string) {
    await tenant.call(`/api/v2/jobs/${id}/events`)
    return (await tenant.call(`/api/v2/jobs/${id}`)).json
  }

  test('are not run by a key without models:run, neither directly nor inside a workflow', async () => {
    const tenant = await app.account('scoped')
    const jobsOnly = (await keyOf('scoped', JOB_SCOPES)).text
    const full = (await keyOf('scoped', [...JOB_SCOPES, 'models:run'])).text
    const call = withKey(tenant, jobsOnly)
    const before = provider.submits.length
    const direct = await call('/v2/models/fake/direct', { method: 'POST', body: '{}' })
    assert.deepEqual([direct.status, direct.json.error_type], [403, 'forbidden'])
    const extras = [{}, { api_key_comfy_org: jobsOnly }, { api_key_service_org: jobsOnly }, { api_key_comfy_org: 'x' }]
    for (const extra of extras) {
      const v2 = await submits(call).v2(runGraph('fake/direct'), extra)
      assert.deepEqual([v2.status, v2.json.error.code], [403, 'forbidden'], JSON.stringify(extra))
      assert.match(v2.json.error.message, /models:run/)
      const v1 = await submits(call).v1(runGraph('fake/direct'), extra)
      assert.deepEqual([v1.status, v1.json.error.type], [403, 'forbidden'], JSON.stringify(extra))
      const linked = await submits(call).v2({ ...runGraph(['3', 0]), '3': node('StringConcatenate', TEXTS) }, extra)
      assert.equal(linked.status, 403, linked.text)
    }
    assert.deepEqual((await tenant.call('/api/v2/jobs')).json.jobs, [], 'nothing was recorded')
    const plain = await submits(call).v2({ '1': node('PreviewAny', { source: 'a' }) })
    assert.equal(plain.status, 201, 'other workflows are not affected')
    // Whoever brings a key that may, may; and the other way round.
    const lent = await submits(call).v2(runGraph('fake/direct'), { api_key_comfy_org: full })
    assert.equal((await ended(tenant, lent.json.id)).status, 'succeeded')
    const lowered = await submits(withKey(tenant, full)).v2(runGraph('fake/direct'), { api_key_comfy_org: jobsOnly })
    assert.equal(lowered.status, 403)
    assert.equal(provider.submits.length, before + 1)
  })

  test('are run only with a key of the account in extra_data: every way to submit says so at once, and names the field', async () => {
    const tenant = await app.account('keyless')
    const stranger = await app.account('stranger')
    const workflow = runGraph('fake/direct')
    const before = provider.submits.length
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const post = (path: string, body: object) =>
      tenant.call(path, { method: 'POST', headers, body: JSON.stringify(body) })
    const extras = [
      undefined,
      {},
      { api_key_comfy_org: '' },
      { api_key_service_org: 'x' },
      { api_key_service_org: stranger.key },
    ]
    for (const extra_data of extras) {
      const v2 = await post('/api/v2/jobs', { workflow, extra_data })
      assert.deepEqual([v2.status, v2.json.error.code], [403, 'forbidden'], v2.text)
      assert.match(v2.json.error.message, /extra_data\.api_key_service_org/)
      const v1 = await post('/api/prompt', { prompt: workflow, extra_data })
      assert.deepEqual([v1.status, v1.json.error.type], [403, 'forbidden'], v1.text)
      const dry = await post('/api/v2/jobs/validate', { workflow, extra_data })
      assert.match(dry.text, /extra_data\.api_key_service_org/)
      const batch = await post('/api/v2/jobs/batch', { jobs: [{ workflow, extra_data }] })
      assert.ok([403, 422].includes(batch.status), batch.text)
      assert.match(batch.text, /extra_data\.api_key_service_org/)
    }
    const agent = await post('/mcp', {
      ...{ jsonrpc: '2.0', id: 1, method: 'tools/call' },
      params: { name: 'submit_workflow', arguments: { workflow } },
    })
    assert.match(agent.text, /extra_data\.api_key_service_org/)
    assert.deepEqual((await tenant.call('/api/v2/jobs')).json.jobs, [], 'nothing was recorded')
    assert.equal(provider.submits.length, before)
  })

  test('are not run by a key that was revoked while its job waited', async () => {
    const tenant = await app.account('revoked', { concurrentJobs: 1 })
    const key = await keyOf('revoked', null)
    const blocked = gate()
    provider.answer(blocked.answer, done({ ok: true }))
    const before = provider.submits.length
    const { v2 } = submits(tenant.call)
    const first = await v2(runGraph('fake/direct'), { api_key_comfy_org: tenant.key })
    const second = await v2(runGraph('fake/direct', 'y'), { api_key_comfy_org: key.text })
    assert.equal(second.status, 201, second.text)
    const revoked = await app.admin('POST', `/keys/${key.id}/revoke`)
    assert.ok(revoked.status < 300, revoked.text)
    blocked.open()
    assert.equal((await ended(tenant, first.json.id)).status, 'succeeded')
    const job = await ended(tenant, second.json.id)
    assert.deepEqual([job.status, /API key/.test(job.error.message)], ['failed', true], JSON.stringify(job.error))
    assert.equal(provider.submits.length, before + 1)
  })

  test('that an account may not use are hidden from its lists and refused with 403 at every door', async () => {
    const tenant = await app.account('entitled', { denyModels: ['fake/p*', 'other/*'] })
    const { call } = tenant
    const listed = async () =>
      (await call('/v2/models?limit=100')).json.data
        .map(({ id }: { id: string }) => id)
        .filter((id: string) => /^(fake|other)\//.test(id))
    assert.deepEqual(await listed(), ['fake/direct'])
    const body = '{"prompt":"x"}'
    for (const id of ['fake/paid', 'other/one', 'fake/special']) {
      const doors = [
        await call(`/v2/models/${id}`),
        await call(`/v2/models/${id}/openapi.json`),
        await call(`/v2/models/${id}`, { method: 'POST', body }),
        await call(`/v2/models/${id}/estimate`, { method: 'POST', body }),
        await call(`/v2/models/${id}/requests`, { method: 'POST', body }),
      ]
      for (const { status, json, headers } of doors)
        assert.deepEqual([status, json.error_type, headers['x-comfy-error-type']], [403, 'forbidden', 'forbidden'], id)
      const extra = { api_key_comfy_org: tenant.key }
      const v2 = await submits(call).v2(runGraph(` ${id}`), extra)
      assert.deepEqual([v2.status, v2.json.error.code], [403, 'forbidden'], id)
      const v1 = await submits(call).v1(runGraph(id), extra)
      assert.deepEqual([v1.status, v1.json.error.type], [403, 'forbidden'], id)
      // Which model it is may be known only when the workflow runs.
      const late = { ...runGraph(['3', 0]), '3': node('StringConcatenate', { ...TEXTS, string_a: id, string_b: '' }) }
      const job = await ended(tenant, (await submits(call).v2(late, extra)).json.id)
      assert.match(job.error?.message ?? '', /not included in what this account may use/)
    }
    assert.equal((await call('/v2/models/fake/direct', { method: 'POST', body })).status, 200)
    const changed = await app.admin('PATCH', '/accounts/entitled', {
      limits: { creditFloorMicros: null, allowModels: ['fake/special', 'other/*'], denyModels: ['*/one'] },
    })
    assert.deepEqual(
      [changed.status, changed.json.limits.allowModels],
      [200, ['fake/special', 'other/*']],
      changed.text,
    )
    assert.deepEqual(await listed(), ['fake/special'], 'a list of its own also gives what needs an entitlement')
    assert.equal((await call('/v2/models/fake/special', { method: 'POST', body })).status, 200)
    assert.equal((await call('/v2/models/fake/direct', { method: 'POST', body })).status, 403)
    const { json: audit } = await app.admin('GET', '/audit?limit=100&subject=entitled')
    assert.match(JSON.stringify(audit), /"denyModels":\["\*\/one"\]/)
    const wrong = await app.admin('PATCH', '/accounts/entitled', { limits: { denyModels: ['bfl'] } })
    assert.ok(wrong.status === 400 || wrong.status === 422, wrong.text)
    assert.match(wrong.text, /denyModels/)
  })

  test('in the queue are not run once their account may not use them, and cost nothing', async () => {
    const tenant = await app.account('waiting', { routerConcurrency: 1, creditFloorMicros: -1_000_000 })
    const { call } = tenant
    for (const [limits, expected] of [
      [{ denyModels: ['fake/paid'] }, 'forbidden'],
      [{ subscriptionActive: false }, 'not_enabled'],
    ] as const) {
      const blocked = gate()
      provider.answer(blocked.answer, done({ ok: true }))
      const before = provider.submits.length
      const own = { routerConcurrency: 1, creditFloorMicros: -1_000_000 }
      await app.admin('PATCH', '/accounts/waiting', { limits: own })
      const submit = (id: string) => call(`/v2/models/${id}/requests`, { method: 'POST', body: '{"prompt":"x"}' })
      const first = await submit('fake/direct')
      const second = await submit('fake/paid')
      assert.deepEqual([first.status, second.status], [201, 201], second.text)
      await waitUntil(() => provider.submits.length !== before)
      await app.admin('PATCH', '/accounts/waiting', { limits: { ...own, ...limits } })
      blocked.open()
      const stored = app.service.app.store.requests
      let found = await stored.find('waiting', second.json.request_id)
      while (found?.state === 'waiting' || found?.state === 'running') {
        await new Promise(setImmediate)
        found = await stored.find('waiting', second.json.request_id)
      }
      await app.admin('PATCH', '/accounts/waiting', { limits: own })
      const answer = await call(`/v2/models/fake/paid/requests/${second.json.request_id}`)
      assert.deepEqual([answer.status, answer.json.error_type], [403, expected], answer.text)
      assert.equal(provider.submits.length, before + 1)
    }
    const balance = await app.service.app.store.ledger.balance('waiting')
    assert.deepEqual([balance?.available, balance?.held], [0, 0])
  })
})

const TEXTS = { string_a: 'fake/', string_b: 'direct', delimiter: '' }
