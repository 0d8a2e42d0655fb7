/** Schedules through HTTP: made, changed and refused; their times come, by a clock that the test moves. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'one' } } }
const NIGHTLY = { name: 'nightly', cron: '30 2 * * mon-fri', time_zone: 'Europe/Berlin', workflow: SAVE }

const send = (tenant: Pick<Tenant, 'call'>, path: string, body?: unknown, method = 'POST') =>
  tenant.call(`/api/v2/schedules${path}`, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })

async function make(tenant: Tenant, fields: object = {}) {
  const made = await send(tenant, '', { ...NIGHTLY, ...fields })
  assert.equal(made.status, 201, made.text)
  return made.json
}

/** Of the service: it goes on like any other, and can be put forward. */
function createMovedClock() {
  let aheadMs = 0
  const now = () => new Date(Date.now() + aheadMs)
  return {
    clock: { now },
    /** To the beginning of the next minute. */
    passMinute() {
      aheadMs += 60_000 - (now().getTime() % 60_000)
    },
  }
}

const runsOf = async (tenant: Tenant, id: string) => (await tenant.call(`/api/v2/schedules/${id}/runs`)).json.runs

const untilRuns = (tenant: Tenant, id: string, count: number) =>
  waitUntil(async () => (await runsOf(tenant, id)).length >= count)

test('a schedule is made, read, changed, paused, resumed and removed by its account', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  const made = await make(ada, { metadata: { team: 'art' }, priority: 4 })
  assert.deepEqual(
    [made.time_zone, made.overlap, made.catch_up, made.state, made.endpoint, made.workflow, made.upcoming.length],
    ['Europe/Berlin', 'skip', 'none', 'active', null, SAVE, 5],
  )
  assert.equal(made.next_at, made.upcoming[0])
  const { workflow: _, inputs: __, upcoming: ___, ...listed } = made
  assert.deepEqual((await ada.call('/api/v2/schedules')).json, { schedules: [listed] })
  const changed = await send(ada, `/${made.id}`, { cron: '@hourly', time_zone: 'UTC', overlap: 'queue' }, 'PATCH')
  assert.deepEqual([changed.status, changed.json.overlap, changed.json.name], [200, 'queue', 'nightly'], changed.text)
  assert.match(changed.json.next_at, /:00:00\.000Z$/)
  const paused = await send(ada, `/${made.id}/pause`, { reason: 'holidays' })
  assert.deepEqual([paused.json.state, paused.json.reason, paused.json.next_at], ['paused', 'holidays', null])
  assert.deepEqual(paused.json.upcoming, [])
  const resumed = await send(ada, `/${made.id}/resume`)
  assert.deepEqual([resumed.json.state, resumed.json.next_at], ['active', changed.json.next_at])
  const headers = { 'idempotency-key': 'by-hand' }
  const run = await ada.call(`/api/v2/schedules/${made.id}/run`, { method: 'POST', headers })
  assert.equal(run.status, 201, run.text)
  assert.deepEqual(run.json.metadata, { schedule: 'nightly', team: 'art' })
  const again = await ada.call(`/api/v2/schedules/${made.id}/run`, { method: 'POST', headers })
  assert.equal(again.json.id, run.json.id)
  assert.equal((await runsOf(ada, made.id))[0].job_id, run.json.id)
  assert.equal((await send(ada, `/${made.id}`, undefined, 'DELETE')).status, 204)
  assert.equal((await send(ada, `/${made.id}`, undefined, 'DELETE')).status, 404)
  assert.equal((await ada.call(`/api/v2/schedules/${made.id}/runs`)).status, 404)
})

test('what is wrong is refused when it is set, with the field', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  const wrong: readonly (readonly [fields: object, code: string, field: string])[] = [
    [{ cron: '61 * * * *' }, 'invalid_request', 'cron'],
    [{ cron: '0 0 30 2 *' }, 'invalid_request', 'cron'],
    [{ cron: 5 }, 'invalid_request', 'cron'],
    [{ time_zone: 'Europe/Atlantis' }, 'invalid_request', 'time_zone'],
    [{ overlap: 'often' }, 'invalid_request', 'overlap'],
    [{ catch_up: 'all' }, 'invalid_request', 'catch_up'],
    [{ name: 'two\nlines' }, 'invalid_request', 'name'],
    [{ workflow: undefined }, 'invalid_request', 'workflow'],
    [{ endpoint: 'poster' }, 'invalid_request', 'workflow'],
    [{ inputs: {} }, 'invalid_request', 'inputs'],
    [{ workflow: undefined, endpoint: 'nowhere' }, 'invalid_request', 'endpoint'],
    [{ workflow: { '1': { class_type: 'NoSuchNode', inputs: {} } } }, 'invalid_workflow', 'workflow'],
    [{ workflow: {} }, 'invalid_workflow', 'workflow'],
    [
      { workflow: { '1': { class_type: 'FakeSave', inputs: { text: 'x'.repeat(1_100_000) } } } },
      'invalid_request',
      'workflow',
    ],
    [{ priority: 1.5 }, 'invalid_request', 'priority'],
    [{ surprise: 1 }, 'invalid_request', 'surprise'],
  ]
  const { id } = await make(ada)
  for (const [fields, code, field] of wrong) {
    const refused = await send(ada, '', { ...NIGHTLY, ...fields })
    assert.deepEqual([refused.status, refused.json.error.code], [422, code], refused.text)
    if (field !== 'surprise') assert.equal(refused.json.error.details?.field, field, refused.text)
    if ('workflow' in fields && fields.workflow === undefined) continue
    const unchanged = await send(ada, `/${id}`, fields, 'PATCH')
    if (!('endpoint' in fields)) assert.equal(unchanged.status, 422, unchanged.text)
  }
  assert.equal((await ada.call('/api/v2/schedules')).json.schedules.length, 1)
})

test('its times come, in the name of its key: until that is revoked, and not while the account is suspended', async () => {
  const { clock, passMinute } = createMovedClock()
  await using app = await startShared({}, { overrides: { clock } })
  const ada = await app.account('ada')
  const published = await ada.call('/api/v2/endpoints', {
    method: 'POST',
    body: JSON.stringify({ name: 'poster', file: SAVE }),
  })
  assert.equal(published.status, 201, published.text)
  const every = { cron: '* * * * *', overlap: 'cancel_previous' }
  const graph = await make(ada, { ...every, name: 'graphs' })
  const endpoint = await make(ada, { ...every, name: 'calls', workflow: undefined, endpoint: 'poster' })
  const second = await newKey(app)
  const other = await make(second, { ...every, name: 'of another key' })
  passMinute()
  for (const { id } of [graph, endpoint, other]) await untilRuns(ada, id, 1)
  const [run] = await runsOf(ada, endpoint.id)
  assert.deepEqual([run.outcome, run.by_hand], ['submitted', false])
  const job = (await ada.call(`/api/v2/jobs/${run.job_id}`)).json
  assert.deepEqual([job.metadata.schedule, job.endpoint?.name], ['calls', 'poster'])
  await app.admin('POST', `/keys/${second.keyId}/revoke`)
  await app.admin('PATCH', '/accounts/ada', { status: 'suspended' })
  passMinute()
  // What is told is asked for again as soon as the account may.
  await waitUntil(async () => (await app.service.app.store.schedules.listRuns('ada', graph.id)).length === 2)
  await app.admin('PATCH', '/accounts/ada', { status: 'active' })
  const [skipped] = await runsOf(ada, graph.id)
  assert.deepEqual([skipped.outcome, skipped.message, skipped.job_id], ['skipped', 'the account is suspended', null])
  passMinute()
  await untilRuns(ada, graph.id, 3)
  await waitUntil(async () => (await ada.call(`/api/v2/schedules/${other.id}`)).json.state === 'stopped')
  const stopped = (await ada.call(`/api/v2/schedules/${other.id}`)).json
  assert.match(stopped.reason, /^the key \w+, in whose name it ran, was revoked$/)
  assert.deepEqual([stopped.next_at, stopped.last_error.code], [null, 'unauthorized'])
  const resumed = await send(ada, `/${other.id}/resume`)
  assert.deepEqual([resumed.json.state, resumed.json.reason], ['active', null])
  passMinute()
  await waitUntil(async () => (await runsOf(ada, other.id))[0].outcome === 'submitted')
})

async function newKey(app: SharedApp, scopes?: readonly string[]): Promise<Tenant & { readonly keyId: string }> {
  const made = await app.admin('POST', '/accounts/ada/keys', scopes === undefined ? {} : { scopes })
  assert.equal(made.status, 201, made.text)
  const key = made.json.text as string
  return {
    ...{ id: 'ada', key, keyId: made.json.id },
    call: (path, options = {}) =>
      call(app.url, path, { ...options, headers: { authorization: `Bearer ${key}`, ...options.headers } }),
  }
}

test('a key makes no schedule of what it may not run', async () => {
  await using app = await startShared()
  await app.account('ada')
  const reads = await newKey(app, ['jobs:read'])
  assert.equal((await send(reads, '', NIGHTLY)).status, 403)
  assert.equal((await reads.call('/api/v2/schedules')).status, 200)
  const writes = await newKey(app, ['jobs:write'])
  assert.equal((await send(writes, '', NIGHTLY)).status, 201)
  const refused = await send(writes, '', { ...NIGHTLY, workflow: undefined, endpoint: 'poster' })
  assert.deepEqual([refused.status, refused.json.error.details.scope], [403, 'endpoints:run'], refused.text)
})
