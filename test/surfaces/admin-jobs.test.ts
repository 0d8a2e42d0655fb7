/** Jobs of all accounts, as their operator finds, watches and cancels them. Every answer is held against the contract. */
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ADMIN_TOKEN, type SharedApp, startShared, type Tenant } from '../support/app/start-shared.ts'
import { type Answer, call } from '../support/clients/call.ts'
import { openSpecChecks } from '../support/clients/check-against-spec.ts'
import { createFixedClock } from '../support/fixed-clock.ts'
import { waitUntil } from '../support/wait-until.ts'

const { checkAgainstSpec, checkAgainstSchema } = openSpecChecks('admin.openapi.json')
const SAVE = { '1': { class_type: 'FakeSave', inputs: { text: 'x' } } }
const GATE = { '2': { class_type: 'FakeGate', inputs: {} } }

let app: SharedApp
let [ann, ben]: Tenant[] = []
const jobs = { ended: '', running: '', waiting: [] as string[] }

async function submit(tenant: Tenant | undefined, workflow: object, metadata = {}): Promise<string> {
  const answer = await tenant?.call('/api/v2/jobs', { method: 'POST', body: JSON.stringify({ workflow, metadata }) })
  assert.equal(answer?.status, 201, answer?.text)
  return answer?.json.id as string
}

async function ask(method: string, template: string, path = template, body?: object): Promise<Answer> {
  const answer = await app.admin(method, path, body)
  const file = template.split('?')[0] ?? ''
  if (answer.status >= 400) checkAgainstSchema('Error', answer.json)
  else checkAgainstSpec(method, `/admin/v1${file}`, answer.status, answer.json)
  return answer
}

const idsOf = async (query: string) =>
  (await ask('GET', '/jobs', `/jobs${query}`)).json.jobs.map(({ id }: { readonly id: string }) => id)

before(async () => {
  // On a clock that stands still, nobody's turn on the only slot is ever over.
  app = await startShared({ workers: '1' }, { overrides: { clock: createFixedClock(new Date()) } })
  ann = await app.account('ann')
  ben = await app.account('ben')
  jobs.ended = await submit(ann, SAVE, { scene: '1' })
  await waitUntil(async () => (await idsOf('?status=succeeded')).length === 1)
  jobs.running = await submit(ben, GATE)
  await app.engine.untilRuns(2)
  jobs.waiting = [await submit(ann, GATE, { scene: '1' }), await submit(ben, SAVE)]
})
after(() => app[Symbol.asyncDispose]())

test('an operator finds jobs of all accounts by any filter, page by page, and those of one account', async () => {
  const all = [jobs.waiting[1], jobs.waiting[0], jobs.running, jobs.ended]
  assert.deepEqual(await idsOf(''), all)
  assert.deepEqual(await idsOf('?account=ann'), [jobs.waiting[0], jobs.ended])
  assert.deepEqual(await idsOf('?account=nobody'), [])
  assert.deepEqual(await idsOf('?status=queued&sort=oldest'), jobs.waiting)
  assert.deepEqual(await idsOf('?class=FakeSave'), [jobs.waiting[1], jobs.ended])
  assert.deepEqual(await idsOf('?meta.scene=1'), [jobs.waiting[0], jobs.ended])
  assert.deepEqual(await idsOf(`?q=${jobs.running}`), [jobs.running])
  const first = (await ask('GET', '/jobs', '/jobs?limit=3&counts=1')).json
  assert.deepEqual(first.jobs[0].account_id, 'ben')
  assert.deepEqual([first.counts.queued, first.counts.running, first.counts.succeeded], [2, 1, 1])
  assert.deepEqual(await idsOf(`?limit=3&cursor=${first.next_cursor}`), [jobs.ended])
  const others = [`?account=ann&cursor=${first.next_cursor}`, '?stat=queued', '?limit=101', '?status=x']
  for (const query of others) assert.equal((await ask('GET', '/jobs', `/jobs${query}`)).status, 400, query)
})

test('an operator sees one job as its owner does, and whose it is', async () => {
  const job = (await ask('GET', '/jobs/{id}', `/jobs/${jobs.ended}`)).json
  assert.deepEqual(
    [job.account_id, job.status, job.attempts.length, job.attempts[0].engine],
    ['ann', 'succeeded', 1, job.engine],
  )
  assert.equal(job.outputs_list.length, job.outputs)
  assert.deepEqual([job.idempotency_key, job.has_layout, job.inputs, job.batch_id], [null, false, [], null])
  const waiting = (await ask('GET', '/jobs/{id}', `/jobs/${jobs.waiting[0]}`)).json
  assert.equal(waiting.wait.engines.length, 1)
  for (const id of ['x', '018f0000-0000-7000-8000-000000000000'])
    assert.equal((await ask('GET', '/jobs/{id}', `/jobs/${id}`)).status, 404)
})

test('a key of an account, or none, gets nothing of this', async () => {
  const paths = ['/jobs', `/jobs/${jobs.ended}`, '/events', '/series', '/engines/fake/log', '/engines/fake/jobs']
  for (const path of paths) {
    assert.equal((await ann?.call(`/admin/v1${path}`))?.status, 401, path)
    assert.equal((await call(app.url, `/admin/v1${path}`)).status, 401, path)
  }
  const body = JSON.stringify({ filter: {} })
  assert.equal((await ann?.call('/admin/v1/jobs/cancel', { method: 'POST', body }))?.status, 401)
})

test('the stream of the service tells what happens to jobs of every account', async () => {
  const stop = new AbortController()
  const headers = { authorization: `Bearer ${ADMIN_TOKEN}` }
  const stream = await fetch(`${app.url}/admin/v1/events`, { headers, signal: stop.signal })
  assert.equal(stream.headers.get('content-type'), 'text/event-stream')
  let text = ''
  const reading = (async () => {
    for await (const chunk of stream.body ?? []) text += Buffer.from(chunk).toString()
  })().catch(() => {})
  const heard = (event: string, part: string) =>
    text.split('\n\n').some((frame) => frame.includes(`event: ${event}\n`) && frame.includes(part))
  await waitUntil(() => heard('hello', '"queued":2') && heard('job', jobs.running))
  const fresh = [await submit(ann, SAVE), await submit(ben, SAVE)]
  await waitUntil(() => fresh.every((id) => heard('job', id)) && heard('job', '"account_id":"ann"'))
  stop.abort()
  await reading
  await ask('POST', '/jobs/cancel', '/jobs/cancel', { ids: fresh })
})

test('the series are bounded, and steps that nobody looked at are null', async () => {
  await waitUntil(async () => {
    const { series } = (await ask('GET', '/series', '/series?names=queued,spend&step=3600&points=2')).json
    return series[0].name === 'queued' && series[0].values.length === 2 && series[0].values[1] !== null
  })
  const { series, step_seconds: step } = (await ask('GET', '/series')).json
  assert.deepEqual([series.length, series[0].values.length, step], [7, 60, 60])
  for (const query of ['?names=x', '?step=15', '?step=7200', '?points=1001'])
    assert.equal((await ask('GET', '/series', `/series${query}`)).status, 400, query)
})

test('an engine has jobs, and says that it keeps no log of its own', async () => {
  const [engine] = (await app.admin('GET', '/engines')).json.engines
  const listed = (await ask('GET', '/engines/{id}/jobs', `/engines/${engine.id}/jobs`)).json.jobs
  assert.ok(listed.some(({ id }: { readonly id: string }) => id === jobs.running))
  const log = (await ask('GET', '/engines/{id}/log', `/engines/${engine.id}/log`)).json
  assert.deepEqual([log.is_kept, log.lines], [false, []])
  assert.equal((await ask('GET', '/engines/{id}/log', '/engines/nowhere/log')).status, 404)
})

test('many cancels are counted first, and each of them is in the audit', async () => {
  const cancel = async (body: object) => (await ask('POST', '/jobs/cancel', '/jobs/cancel', body)).json
  const filter = { status: 'queued' }
  assert.deepEqual(await cancel({ filter, account: 'ann', dry_run: true }), { count: 1, has_more: false })
  assert.deepEqual(await cancel({ filter, only_waiting: true }), { count: 2, has_more: false })
  assert.deepEqual(
    (await idsOf('?status=canceled')).slice(0, 4).filter((id: string) => jobs.waiting.includes(id)),
    [...jobs.waiting.toReversed()],
  )
  for (const id of jobs.waiting) {
    const { records } = (await app.admin('GET', `/audit?subject=${id}`)).json
    assert.deepEqual(
      records.map(({ action }: { readonly action: string }) => action),
      ['job.cancel'],
    )
  }
  const wrong = [{}, { filter: { clas: 'x' } }, { filter: {}, account: 7 }, { ids: 'x' }]
  for (const body of wrong) assert.equal((await ask('POST', '/jobs/cancel', '/jobs/cancel', body)).status >= 400, true)
})
