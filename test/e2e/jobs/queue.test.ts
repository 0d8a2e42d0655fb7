/** The queue by hand, through HTTP: pauses of the service, a pool and an account, places of waiting jobs, holds and deadlines. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'one' } } }
const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()

function send(tenant: Tenant, path: string, body?: unknown, method = 'POST') {
  return tenant.call(`/api/v2${path}`, { method, ...(body !== undefined && { body: JSON.stringify(body) }) })
}

async function submit(tenant: Tenant, fields: object = {}) {
  const answer = await send(tenant, '/jobs', { workflow: SAVE, ...fields })
  assert.equal(answer.status, 201, answer.text)
  return answer.json
}

function untilStatus(tenant: Tenant, id: string, status: string) {
  return waitUntil(async () => (await tenant.call(`/api/v2/jobs/${id}`)).json.status === status)
}

const waitOf = async (app: SharedApp, id: string) => (await app.admin('GET', `/jobs/${id}`)).json.wait

test('an account pauses itself: its jobs are accepted and wait, those of others run, and it says why', async () => {
  await using app = await startShared()
  const [ada, bob] = [await app.account('ada'), await app.account('bob')]
  const paused = await send(ada, '/queue/pause', { reason: 'a look first' })
  assert.equal(paused.status, 200, paused.text)
  assert.equal(paused.json.is_paused, true)
  assert.deepEqual([paused.json.pauses[0].by, paused.json.pauses[0].reason], ['account', 'a look first'])
  const [mine, theirs] = [await submit(ada), await submit(bob)]
  await untilStatus(bob, theirs.id, 'succeeded')
  assert.equal((await ada.call(`/api/v2/jobs/${mine.id}`)).json.status, 'queued')
  const wait = await waitOf(app, mine.id)
  assert.deepEqual([wait.reason, wait.pauses[0].reason, wait.estimate_seconds], ['paused', 'a look first', null])
  assert.deepEqual((await bob.call('/api/v2/queue')).json, { is_paused: false, pauses: [] })
  const resumed = await send(ada, '/queue/resume')
  assert.deepEqual([resumed.status, resumed.json], [200, { is_paused: false, pauses: [] }])
  await untilStatus(ada, mine.id, 'succeeded')
})

test('an operator pauses the service, a pool or an account, which its owner cannot take back; the audit tells it', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  for (const key of [{ scope: 'service' }, { scope: 'pool', name: 'default' }, { scope: 'account', name: 'ada' }]) {
    const paused = await app.admin('POST', '/queue/pause', { ...key, reason: 'upkeep' })
    assert.equal(paused.status, 200, paused.text)
    const { id } = await submit(ada)
    assert.equal((await waitOf(app, id)).reason, 'paused', key.scope)
    await send(ada, '/queue/resume')
    assert.equal((await ada.call('/api/v2/queue')).json.is_paused, true)
    const resumed = await app.admin('POST', '/queue/resume', key)
    assert.deepEqual(resumed.json, { pauses: [] })
    await untilStatus(ada, id, 'succeeded')
  }
  await send(ada, '/queue/pause')
  assert.deepEqual((await app.admin('GET', '/queue')).json.pauses[0].scope, 'own')
  await app.admin('POST', '/queue/resume', { scope: 'account', name: 'ada' })
  assert.equal((await ada.call('/api/v2/queue')).json.is_paused, false)
  const audit = (await app.admin('GET', '/audit')).json.records.map(({ action }: { action: string }) => action)
  assert.deepEqual(
    [audit.filter((action: string) => action === 'queue.pause').length, audit.includes('queue.resume')],
    [3, true],
  )
  for (const [body, field] of [
    [{ scope: 'pool', name: 'nowhere' }, 'name'],
    [{ scope: 'account', name: 'nobody' }, 'name'],
    [{ scope: 'account' }, 'name'],
    [{ scope: 'service', name: 'x' }, 'name'],
    [{ scope: 'everything' }, 'scope'],
  ] as const) {
    const refused = await app.admin('POST', '/queue/pause', body)
    assert.deepEqual([refused.status, refused.json.error.field], [422, field], refused.text)
  }
})

test('a pause holds after a restart', async () => {
  const first = await startShared()
  const ada = await first.account('ada')
  await first.admin('POST', '/queue/pause', { scope: 'service' })
  const { id } = await submit(ada)
  const service = await first.service.restart()
  try {
    const url = (path: string) => `${service.url}${path}`
    const headers = { authorization: `Bearer ${ada.key}` }
    const read = async (path: string) =>
      (await fetch(url(path), { headers })).json() as Promise<Record<string, unknown>>
    assert.equal((await read('/api/v2/queue'))['is_paused'], true)
    assert.equal((await read(`/api/v2/jobs/${id}`))['status'], 'queued')
  } finally {
    await service[Symbol.asyncDispose]()
  }
})

test('a waiting job is moved inside its account by its owner and by an operator, and nothing else is', async () => {
  await using app = await startShared()
  const [ada, bob] = [await app.account('ada'), await app.account('bob')]
  await app.admin('POST', '/queue/pause', { scope: 'service' })
  const [first, second, third] = [await submit(ada), await submit(ada), await submit(ada)]
  const change = (id: string, body: object, tenant = ada) => send(tenant, `/jobs/${id}`, body, 'PATCH')
  const front = await change(third.id, { move: 'front' })
  assert.deepEqual([front.status, front.json.queue_position, front.json.priority], [200, 1, 1], front.text)
  assert.equal((await change(first.id, { move: 'back' })).json.queue_position, 3)
  assert.equal((await change(first.id, { priority: 9 })).json.queue_position, 1)
  const moved = await app.admin('PATCH', `/jobs/${second.id}`, { move: 'front' })
  assert.deepEqual([moved.status, moved.json.queue_position, moved.json.account_id], [200, 1, 'ada'], moved.text)
  for (const [body, field] of [
    [{}, null],
    [{ move: 'up' }, 'move'],
    [{ priority: 0.5 }, 'priority'],
    [{ priority: 1, move: 'front' }, null],
    [{ not_before: 'tomorrow' }, 'not_before'],
    [{ not_before: inSeconds(-60) }, 'not_before'],
    [{ not_before: '2999-01-01T00:00:00Z' }, 'not_before'],
  ] as const) {
    const refused = await change(second.id, body)
    assert.equal(refused.status, 422, refused.text)
    if (field !== null) assert.match(refused.text, new RegExp(field))
  }
  assert.equal((await change(first.id, { move: 'front' }, bob)).status, 404)
  await send(ada, `/jobs/${first.id}/cancel`)
  const ended = await change(first.id, { move: 'front' })
  assert.deepEqual([ended.status, ended.json.error.code], [409, 'not_waiting'])
  await app.admin('POST', '/queue/resume', { scope: 'service' })
  await untilStatus(ada, third.id, 'succeeded')
})

test('a held job waits for its time, which can be taken back, and one that waited too long ends expired', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  const soon = await submit(ada, { not_before: inSeconds(1.2) })
  const later = await submit(ada, { not_before: inSeconds(3600), priority: 3 })
  assert.deepEqual([later.status, later.priority, typeof later.not_before], ['queued', 3, 'string'])
  assert.equal((await waitOf(app, later.id)).reason, 'held')
  await untilStatus(ada, soon.id, 'succeeded')
  const ran = (await ada.call(`/api/v2/jobs/${soon.id}`)).json
  assert.ok(ran.started_at >= soon.not_before, `${ran.started_at} is not before ${soon.not_before}`)
  assert.equal((await ada.call(`/api/v2/jobs/${later.id}`)).json.status, 'queued')
  await send(ada, `/jobs/${later.id}`, { not_before: null }, 'PATCH')
  await untilStatus(ada, later.id, 'succeeded')
  await send(ada, '/queue/pause')
  const late = await submit(ada, { expires_queued_after: 1 })
  assert.equal(typeof late.queued_until, 'string')
  await untilStatus(ada, late.id, 'expired')
  await send(ada, '/queue/resume')
})

test('times that no job can keep are refused at the submit, each with its field, and in a dry run', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  for (const [fields, field] of [
    [{ not_before: inSeconds(-5) }, 'not_before'],
    [{ not_before: '2999-01-01T00:00:00Z' }, 'not_before'],
    [{ not_before: '2026-01-01 12:00' }, 'not_before'],
    [{ not_before: 17 }, 'not_before'],
    [{ expires_queued_after: -1 }, 'expires_queued_after'],
    [{ expires_queued_after: 0 }, 'expires_queued_after'],
    [{ expires_queued_after: 1.5 }, 'expires_queued_after'],
    [{ expires_queued_after: '60' }, 'expires_queued_after'],
    [{ expires_queued_after: 31_000_000 }, 'expires_queued_after'],
    [{ expires_queued_after: 60, not_before: inSeconds(600) }, 'expires_queued_after'],
  ] as const) {
    const refused = await send(ada, '/jobs', { workflow: SAVE, ...fields })
    assert.equal(refused.status, 422, refused.text)
    assert.equal(refused.json.error.details.field, field, refused.text)
    const tried = await send(ada, '/jobs/validate', { workflow: SAVE, ...fields })
    assert.equal(tried.json.is_accepted, false, JSON.stringify(fields))
  }
  assert.equal((await submit(ada, { not_before: null, expires_queued_after: null })).not_before, undefined)
})
