/** Results that answer further jobs, with engines that promise their results: what such a job looks like, and when it is run after all. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ADMIN_TOKEN, type SharedApp, startShared } from '../../support/app/start-shared.ts'
import { call } from '../../support/clients/call.ts'
import { checkAgainstSchema } from '../../support/clients/check-against-spec.ts'
import { CheckedClient, node, type WireJob } from '../../support/clients/checked-client.ts'
import { createFakeEngine } from '../../support/engines/fake-engine.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'

type Reused = WireJob & { readonly reused_from?: string }
const EXACT = { reuse: 'exact' }

describe('with engines that promise their results', () => {
  let shared: SharedApp
  let build: string | null = '1'
  const engine = createFakeEngine()
  const promising = {
    run: engine.run.bind(engine),
    catalog: () => ({
      ...engine.catalog(),
      repeatability: () => (build === null ? null : { build, names: [] }),
    }),
    [Symbol.asyncDispose]: async () => {},
  }
  before(async () => {
    shared = await startShared({ webhookPrivateNetwork: 'true' }, { overrides: { engine: promising } })
  })
  after(async () => {
    engine.release()
    await shared[Symbol.asyncDispose]()
  })

  async function clientOf(id: string, limits = {}) {
    const { key } = await shared.account(id, limits)
    return new CheckedClient(shared.url, { authorization: `Bearer ${key}` })
  }
  const SAVE = { '1': node('FakeSave', { text: 'a', count: 2 }) }

  test('a job is answered at once, without a run, like any job that has succeeded', async () => {
    await using receiver = await startWebhookReceiver()
    const client = await clientOf('ann')
    const first = await client.run(SAVE, EXACT)
    const tried = await client.call('/api/v2/jobs/validate', {
      method: 'POST',
      body: JSON.stringify({ workflow: SAVE, ...EXACT }),
    })
    assert.deepEqual(tried.json.reuse, { reused_from: first.id, why_not: null })
    const runs = engine.runs.length
    const answer = await client.submit(
      { workflow: SAVE, ...EXACT, webhook: receiver.url, metadata: { a: 'b' } },
      { 'idempotency-key': 'k' },
    )
    assert.deepEqual([answer.status, answer.json.status, answer.json.reused_from], [201, 'succeeded', first.id])
    assert.deepEqual([answer.json.started_at, answer.json.metadata, answer.json.outputs.length], [null, { a: 'b' }, 2])
    assert.deepEqual(await client.job(answer.json.id), answer.json)
    assert.equal((await client.submit({ workflow: SAVE, ...EXACT }, { 'idempotency-key': 'k' })).status, 422)
    await waitUntil(() => receiver.received.length === 1)
    const [{ type, data }] = receiver.received
    assert.deepEqual([type, data['job_id'], data['reused_from']], ['job.succeeded', answer.json.id, first.id])
    checkAgainstSchema('WebhookJobData', data)
    assert.equal(engine.runs.length, runs)
  })

  test('never across accounts; an account that is set so needs not ask, and a job may still say none', async () => {
    const client = await clientOf('ben', { reuseResults: true })
    const first = await client.run(SAVE)
    assert.equal(first.status, 'succeeded')
    assert.equal((first as Reused).reused_from, undefined)
    assert.equal(((await client.run(SAVE)) as Reused).reused_from, first.id)
    assert.equal(((await client.run(SAVE, { reuse: 'none' })) as Reused).reused_from, undefined)
  })

  test('never from another build, nor for a class of which nobody knows', async () => {
    const client = await clientOf('cay')
    const first = await client.run(SAVE, EXACT)
    build = '2'
    const second = (await client.run(SAVE, EXACT)) as Reused
    assert.equal(second.reused_from, undefined)
    build = null
    assert.equal(((await client.run(SAVE, EXACT)) as Reused).reused_from, undefined)
    const tried = await client.call('/api/v2/jobs/validate', {
      method: 'POST',
      body: JSON.stringify({ workflow: SAVE, ...EXACT }),
    })
    assert.match(tried.json.reuse.why_not, /node 1 \(FakeSave\)/)
    build = '1'
    assert.notEqual(((await client.run(SAVE, EXACT)) as Reused).reused_from, undefined)
    assert.notEqual(first.id, second.id)
  })

  test('a result belongs to the engine that ran the job, whatever was promised at its submit', async () => {
    const client = await clientOf('dot', { concurrentJobs: 1 })
    const gate = await client.accepted({ '1': node('FakeGate') })
    await client.untilStatus(gate.id, 'running')
    const waiting = await client.accepted(SAVE, EXACT)
    build = '3'
    engine.release()
    await client.untilStatus(waiting.id, 'succeeded')
    build = '1'
    assert.equal(((await client.run(SAVE, EXACT)) as Reused).reused_from, undefined)
    build = '3'
    assert.equal(((await client.run(SAVE, EXACT)) as Reused).reused_from, waiting.id)
    build = '1'
  })

  test('jobs of a batch are answered with it', async () => {
    const client = await clientOf('eve')
    const first = await client.run(SAVE, EXACT)
    const jobs = [{ workflow: SAVE }, { workflow: SAVE, reuse: 'none' }, { workflow: SAVE }]
    const made = await client.call('/api/v2/jobs/batch', { method: 'POST', body: JSON.stringify({ jobs, ...EXACT }) })
    assert.equal(made.status, 201, made.text)
    const ids = (made.json.items as { job_id: string; status: string }[]).map(({ job_id: id }) => id)
    assert.deepEqual(
      (made.json.items as { status: string }[]).map(({ status }) => status),
      ['succeeded', 'queued', 'succeeded'],
    )
    assert.equal(((await client.job(ids[0] ?? '')) as Reused).reused_from, first.id)
    assert.equal(((await client.untilStatus(ids[1] ?? '', 'succeeded')) as Reused).reused_from, undefined)
  })

  test('what came of it is counted', async () => {
    const { text } = await call(shared.url, '/metrics', { headers: { authorization: `Bearer ${ADMIN_TOKEN}` } })
    assert.match(text, /^atelier_job_reuse_total\{outcome="hit"\} [1-9]/m)
    assert.match(text, /^atelier_job_reuse_total\{outcome="miss"\} [1-9]/m)
    assert.match(text, /^atelier_job_reuse_total\{outcome="refused"\} [1-9]/m)
    assert.match(text, /^atelier_job_reuse_saved_seconds_total \d/m)
  })
})
