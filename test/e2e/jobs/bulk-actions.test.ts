/** One thing for many jobs through HTTP: what it would be about, what becomes of each, and what is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type SharedApp, startShared, type Tenant } from '../../support/app/start-shared.ts'
import { checkAgainstSpec, openSpecChecks } from '../../support/clients/check-against-spec.ts'
import { waitUntil } from '../../support/wait-until.ts'

const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'one' } } }
const FAIL = { '1': { class_type: 'FakeFail', inputs: {} } }
const GATE = { '1': { class_type: 'FakeGate', inputs: {} } }
const BULK = '/api/v2/bulk-actions'
const admin = openSpecChecks('admin.openapi.json')

async function submit(tenant: Tenant, workflow: object, fields: object = {}): Promise<string> {
  const body = JSON.stringify({ workflow, ...fields })
  const answer = await tenant.call('/api/v2/jobs', { method: 'POST', body })
  assert.equal(answer.status, 201, answer.text)
  return answer.json.id
}

const statusOf = async (tenant: Tenant, id: string) => (await tenant.call(`/api/v2/jobs/${id}`)).json.status

function untilStatus(tenant: Tenant, id: string, status: string) {
  return waitUntil(async () => (await statusOf(tenant, id)) === status)
}

async function ask(tenant: Tenant, body: object, headers: Record<string, string> = {}) {
  const answer = await tenant.call(BULK, { method: 'POST', headers, body: JSON.stringify(body) })
  if (answer.status < 300) checkAgainstSpec('POST', BULK, answer.status, answer.json)
  return answer
}

async function untilEnded(tenant: Tenant, id: string) {
  const ended = await waitUntil(async () => {
    const { json } = await tenant.call(`${BULK}/${id}`)
    return json.state === 'working' ? null : json
  })
  checkAgainstSpec('GET', `${BULK}/{id}`, 200, ended)
  return ended
}

async function jobsOf(tenant: Tenant, id: string, query = '') {
  const { json } = await tenant.call(`${BULK}/${id}/jobs${query}`)
  checkAgainstSpec('GET', `${BULK}/{id}/jobs`, 200, json)
  return json
}

test('all that failed for one reason are run again, each once, as the dry run had counted them', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  const failed: string[] = []
  for (let index = 0; index < 5; index += 1)
    failed.push(await submit(ada, FAIL, { metadata: { scene: String(index) } }))
  for (const id of failed) await untilStatus(ada, id, 'failed')
  await untilStatus(ada, await submit(ada, SAVE), 'succeeded')
  const filter = { like: failed[2] }
  const would = await ask(ada, { action: 'rerun', filter, dry_run: true })
  assert.deepEqual([would.status, would.json.count, would.json.has_more], [200, 5, false])
  assert.equal(
    (await ask(ada, { action: 'rerun', filter: { ...filter, 'meta.scene': '3' }, dry_run: true })).json.count,
    1,
  )
  // Those that fail again meanwhile are not among them.
  const made = await ask(ada, { action: 'rerun', filter: { ...filter, until: would.json.as_of } })
  assert.deepEqual([made.status, made.json.total, made.json.action], [201, 5, 'rerun'])
  const ended = await untilEnded(ada, made.json.id)
  assert.deepEqual([ended.state, ended.done, ended.progress, ended.reason], ['done', 5, 1, null])
  const { jobs, next } = await jobsOf(ada, made.json.id)
  assert.equal(next, null)
  assert.deepEqual(
    jobs.map((job: { job_id: string }) => job.job_id),
    failed,
  )
  const again = await Promise.all(jobs.map((job: { new_job_id: string }) => ada.call(`/api/v2/jobs/${job.new_job_id}`)))
  assert.deepEqual(
    again.map(({ json }) => json.metadata),
    failed.map((_, index) => ({ scene: String(index) })),
  )
  const first = await jobsOf(ada, made.json.id, '?limit=2')
  assert.deepEqual([first.jobs.length, first.next], [2, 2])
  assert.equal((await jobsOf(ada, made.json.id, '?limit=2&after=4')).jobs.length, 1)
  assert.deepEqual((await jobsOf(ada, made.json.id, '?outcome=refused')).jobs, [])
  assert.deepEqual(
    (await ada.call(BULK)).json.bulk_actions.map(({ id }: { id: string }) => id),
    [made.json.id],
  )
})

test('waiting jobs get a priority or are canceled by filter, and what runs is left alone where that was asked for', async () => {
  await using app = await startShared({ workers: '1' })
  const ada = await app.account('ada')
  const runs = await submit(ada, GATE)
  await app.engine.untilRuns(1)
  const waiting = [await submit(ada, SAVE), await submit(ada, SAVE, { metadata: { keep: 'yes' } })]
  const raised = await ask(ada, { action: 'prioritize', job_ids: [runs, ...waiting], priority: 9 })
  assert.deepEqual([raised.json.total, raised.json.job_ids, raised.json.filter], [2, 3, null])
  assert.equal((await untilEnded(ada, raised.json.id)).done, 2)
  for (const id of waiting) assert.equal((await ada.call(`/api/v2/jobs/${id}`)).json.priority, 9)
  const canceled = await ask(ada, { action: 'cancel', filter: {}, only_waiting: true })
  assert.equal((await untilEnded(ada, canceled.json.id)).done, 2)
  for (const id of waiting) assert.equal(await statusOf(ada, id), 'canceled')
  assert.equal(await statusOf(ada, runs), 'running')
  const rest = await ask(ada, { action: 'cancel', filter: { status: 'running' } })
  assert.equal((await untilEnded(ada, rest.json.id)).done, 1)
  await untilStatus(ada, runs, 'canceled')
})

test('what jobs made comes in archives, also when some of the jobs are gone', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  const made = [await submit(ada, SAVE), await submit(ada, SAVE)]
  for (const id of made) await untilStatus(ada, id, 'succeeded')
  await untilStatus(ada, await submit(ada, FAIL), 'failed')
  const { json: download } = await ask(ada, { action: 'download', filter: {} })
  assert.deepEqual([download.state, download.total, download.parts], ['done', 2, 1])
  const archive = await ada.call(download.urls.outputs)
  assert.deepEqual([archive.status, archive.bytes.subarray(0, 2).toString()], [200, 'PK'])
  for (const id of made) assert.ok(archive.bytes.includes(id.slice(0, 8)))
  assert.equal((await ada.call(`${BULK}/${download.id}/outputs.zip?part=2`)).status, 404)
  const { json: nothing } = await ask(ada, { action: 'download', filter: { code: 'none' } })
  assert.deepEqual([nothing.total, nothing.parts, nothing.urls.outputs], [0, 0, null])
})

test('a request that is sent again with its key makes no second one', async () => {
  await using app = await startShared()
  const ada = await app.account('ada')
  await untilStatus(ada, await submit(ada, FAIL), 'failed')
  const headers = { 'idempotency-key': 'once' }
  const wish = { action: 'rerun', filter: { status: 'failed' } }
  const [first, second] = [await ask(ada, wish, headers), await ask(ada, wish, headers)]
  assert.deepEqual([second.status, second.json.id], [201, first.json.id])
  const other = await ask(ada, { ...wish, filter: {} }, headers)
  assert.deepEqual([other.status, other.json.error.code], [422, 'idempotency_key_reuse'])
  await untilEnded(ada, first.json.id)
  const { json } = await ada.call('/api/v2/jobs')
  assert.equal(json.jobs.length, 2)
})

test('what makes no sense is refused with what to do, and what is not the caller’s looks as if it were not there', async () => {
  await using app = await startShared()
  const [ada, bob] = [await app.account('ada'), await app.account('bob')]
  for (const [body, words] of [
    [{}, /action/],
    [{ action: 'rerun' }, /either filter or job_ids/],
    [{ action: 'rerun', filter: {}, job_ids: [] }, /job_ids|either/],
    [{ action: 'destroy', filter: {} }, /action/],
    [{ action: 'prioritize', filter: {} }, /priority/],
    [{ action: 'cancel', filter: {}, priority: 1 }, /priority/],
    [{ action: 'rerun', filter: {}, only_waiting: true }, /only_waiting/],
    [{ action: 'rerun', filter: { colour: 'red' } }, /colour|filter/],
    [{ action: 'rerun', filter: { status: 'done' } }, /status/],
    [{ action: 'rerun', job_ids: ['x'] }, /job_ids/],
    [{ action: 'rerun', filter: { like: crypto.randomUUID() } }, /filter\.like must be the id of a job that failed/],
  ] as const) {
    const refused = await ask(ada, body)
    assert.ok([400, 422].includes(refused.status), `${JSON.stringify(body)}: ${refused.text}`)
    assert.match(refused.json.error.message, words, refused.text)
  }
  assert.deepEqual((await ada.call(BULK)).json.bulk_actions, [])
  const theirs = await submit(bob, SAVE)
  await untilStatus(bob, theirs, 'succeeded')
  assert.equal((await ask(ada, { action: 'rerun', job_ids: [theirs] })).json.total, 0)
  const { json } = await ask(bob, { action: 'download', filter: {} })
  for (const at of ['', '/jobs', '/outputs.zip']) assert.equal((await ada.call(`${BULK}/${json.id}${at}`)).status, 404)
  assert.equal((await ada.call(`${BULK}/${json.id}/stop`, { method: 'POST' })).status, 404)
})

test('one that waits for room in the queue says so, and can be stopped', async () => {
  await using app = await startShared({ workers: '0' })
  const ada = await app.account('ada', { queuedJobs: 3 })
  const waiting = [await submit(ada, SAVE), await submit(ada, SAVE)]
  const canceled = await ask(ada, { action: 'cancel', job_ids: waiting })
  await untilEnded(ada, canceled.json.id)
  for (let index = 0; index < 2; index += 1) await submit(ada, SAVE)
  const { json: action } = await ask(ada, { action: 'rerun', filter: { status: 'canceled' } })
  const held = await waitUntil(async () => {
    const { json } = await ada.call(`${BULK}/${action.id}`)
    return json.reason === null ? null : json
  })
  assert.deepEqual([held.state, held.done, held.reason.code], ['working', 1, 'queue_full'])
  const stopped = await ada.call(`${BULK}/${action.id}/stop`, { method: 'POST' })
  checkAgainstSpec('POST', `${BULK}/{id}/stop`, 200, stopped.json)
  assert.deepEqual([stopped.json.state, stopped.json.done, stopped.json.reason.code], ['stopped', 1, 'stopped'])
  assert.equal((await jobsOf(ada, action.id, '?outcome=waiting')).jobs.length, 1)
})

test('an operator deals with jobs of all accounts or of one, with lines in the audit log', async () => {
  await using app = await startShared()
  const [ada, bob] = [await app.account('ada'), await app.account('bob')]
  const failed = [await submit(ada, FAIL), await submit(bob, FAIL)]
  await untilStatus(ada, failed[0], 'failed')
  await untilStatus(bob, failed[1], 'failed')
  const would = await app.admin('POST', '/bulk-actions', {
    ...{ action: 'rerun', filter: { status: 'failed' }, account: 'bob', dry_run: true },
  })
  assert.deepEqual([would.status, would.json.count], [200, 1], would.text)
  const made = await app.admin('POST', '/bulk-actions', { action: 'rerun', filter: { status: 'failed' } })
  assert.equal(made.status, 201, made.text)
  admin.checkAgainstSpec('POST', '/admin/v1/bulk-actions', 201, made.json)
  const ended = await untilOperators(app, made.json.id)
  assert.deepEqual([ended.done, ended.state], [2, 'done'])
  const { json: items } = await app.admin('GET', `/bulk-actions/${made.json.id}/jobs`)
  admin.checkAgainstSpec('GET', '/admin/v1/bulk-actions/{id}/jobs', 200, items)
  const [first, second] = items.jobs
  assert.deepEqual([first.account_id, second.account_id], ['ada', 'bob'])
  await untilStatus(ada, first.new_job_id, 'failed')
  await untilStatus(bob, second.new_job_id, 'failed')
  // Accounts see nothing of what operators do to many jobs, nor the other way round.
  assert.deepEqual((await ada.call(BULK)).json.bulk_actions, [])
  assert.equal((await ada.call(`${BULK}/${made.json.id}`)).status, 404)
  const own = await ask(ada, { action: 'download', filter: {} })
  assert.equal((await app.admin('GET', `/bulk-actions/${own.json.id}`)).status, 404)
  const audit = (await app.admin('GET', `/audit?subject=${made.json.id}`)).json.records
  assert.deepEqual(
    audit.map(({ action, details }: { action: string; details: { total: number } }) => [action, details.total]),
    [['bulk.create', 2]],
  )
  assert.equal((await app.admin('GET', '/bulk-actions')).json.bulk_actions.length, 1)
})

function untilOperators(app: SharedApp, id: string) {
  return waitUntil(async () => {
    const { json } = await app.admin('GET', `/bulk-actions/${id}`)
    return json.state === 'working' ? null : json
  })
}
