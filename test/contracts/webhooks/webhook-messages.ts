/** What becomes a message: which changes of jobs, calls and balances are written for which webhooks. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import type { JobError } from '../../../src/domain/jobs/job.ts'
import { type NewHook, WEBHOOK_EVENTS } from '../../../src/domain/webhooks/webhook.ts'
import { at, DAY_MS, newOutput, START, Tenant } from '../store-under-test.ts'
import { newEndpoint, type WebhookRig } from './webhook-rig.ts'

const FAILURE: JobError = { code: 'x', message: 'no', nodeId: '3', classType: 'A', traceback: null }

export function testWebhookMessages({ store, withEndpoint, told, typesOf, claim }: WebhookRig): void {
  test('are told of every move of a job that they ask for, with what was true then', async () => {
    const { tenant, endpoint } = await withEndpoint({ events: [...WEBHOOK_EVENTS] })
    const { job, lease } = await tenant.run({ metadata: { a: 'ü' } }, at(1))
    const [first, second] = [newOutput({ name: 'a.png' }), newOutput({ name: 'b.png' })]
    await store().jobs.commit(lease, { outputs: [first] })
    const finish = { status: 'succeeded', from: ['running'], at: at(3), error: null } as const
    await store().jobs.commit(lease, { outputs: [second], finish })
    const all = await told(tenant)
    const types = ['job.queued', 'job.started', 'output.created', 'output.created', 'job.succeeded']
    assert.deepEqual(
      all.map(({ type }) => type),
      types,
    )
    assert.deepEqual(
      all.map(({ subject, endpointId }) => [subject, endpointId]),
      types.map(() => [job.id, endpoint.id]),
    )
    const [queued, started, made, , ended] = all.map(({ facts }) => JSON.parse(facts))
    assert.deepEqual([queued.status, started.status, made.name], ['queued', 'running', 'a.png'])
    const { outputs, ...rest } = ended
    assert.deepEqual(rest, {
      ...{
        status: 'succeeded',
        created_at: START.getTime(),
        started_at: at(1).getTime(),
        completed_at: at(3).getTime(),
      },
      ...{ expires_at: job.expiresAt.getTime(), attempt: 1, metadata: { a: 'ü' }, error: null, output_count: 2 },
    })
    assert.deepEqual(
      outputs.map(({ id, name }: { id: string; name: string }) => [id, name]),
      [
        [first.assetId, 'a.png'],
        [second.assetId, 'b.png'],
      ],
    )
    assert.equal(new Set(all.map(({ id }) => id)).size, 5)
    assert.ok(all.every(({ id }) => /^msg_[0-9a-f]{32}$/.test(id)))
  })

  test('are told of failures, cancels and expiries, and not of what they did not ask for', async () => {
    const { tenant } = await withEndpoint()
    const failed = await tenant.run({}, at(1))
    await store().jobs.commit(failed.lease, {
      finish: { status: 'failed', from: ['running'], at: at(2), error: FAILURE },
    })
    const waiting = await tenant.submit()
    await store().jobs.cancel(tenant.accountId, waiting.id, at(3))
    await tenant.submit({ expiresAt: at(4) })
    await store().jobs.expire(at(5), 100)
    assert.deepEqual(await typesOf(tenant), ['job.failed', 'job.canceled', 'job.expired'])
    const [{ facts }] = await told(tenant)
    assert.deepEqual(JSON.parse(facts).error, FAILURE)
  })

  test('that come later are told of jobs that wait or run already; a paused one is told nothing', async () => {
    const tenant = await Tenant.create(store())
    const { lease } = await tenant.run({}, at(1))
    const endpoint = newEndpoint(tenant.accountId)
    await store().webhooks.create(endpoint, { max: 3 })
    await tenant.succeed(lease, at(2))
    assert.deepEqual(await typesOf(tenant), ['job.succeeded'])
    await store().webhooks.change(tenant.accountId, endpoint.id, { state: 'paused' }, at(3))
    const second = await tenant.run({}, at(4))
    await tenant.succeed(second.lease, at(5))
    assert.equal((await told(tenant)).length, 1)
  })

  test('that a job brings are told of it alone, and shared by all jobs that bring the same', async () => {
    const tenant = await Tenant.create(store())
    const hook: NewHook = {
      id: `whj_${randomUUID()}`,
      url: 'https://j.example',
      events: ['job.succeeded'],
      secret: null,
      description: '',
    }
    await tenant.submit()
    for (const fields of [{ hook }, { hook }, {}]) {
      const { lease } = await tenant.run(fields, at(1))
      await tenant.succeed(lease, at(2))
    }
    const all = await told(tenant)
    assert.deepEqual(new Set(all.map(({ endpointId }) => endpointId)), new Set([hook.id]))
    // Claims are in order of submission, so the last job is still waiting.
    assert.equal(all.length, 2)
    assert.deepEqual(await store().webhooks.list(tenant.accountId), [])
  })

  test('that want messages in another form are left to processes that know it', async () => {
    const tenant = await Tenant.create(store())
    const form = '{"name":"prediction","base":"https://a.example"}'
    const common = { url: 'https://j.example', events: ['job.succeeded'], secret: null }
    const plain: NewHook = { ...common, id: `whj_${randomUUID()}`, description: '' }
    const formed: NewHook = { ...common, id: `whj_${randomUUID()}`, description: form }
    for (const hook of [plain, formed]) {
      const { lease } = await tenant.run({ hook }, at(1))
      await tenant.succeed(lease, at(2))
    }
    const { accountId } = tenant
    const claimedBy = async (knowsForms: boolean) =>
      (await claim(at(3), { accountId, knowsForms })).map(({ endpoint }) => [endpoint.id, endpoint.description])
    assert.deepEqual(await claimedBy(false), [[plain.id, '']])
    assert.deepEqual(await claimedBy(true), [[formed.id, form]])
  })

  test('are told of queued calls, with their result or why there is none', async () => {
    const { tenant } = await withEndpoint()
    const call = {
      ...{ id: randomUUID(), accountId: tenant.accountId, modelId: 'a/b', key: null, fingerprint: '', baseUrl: '' },
      ...{ createdAt: START, expiresAt: at(DAY_MS), holdMicros: null, spendMicros: 0, isCostly: false },
      ...{ mayResubmit: false, body: { kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }, bodyBytes: 2 },
    }
    const second = { ...call, id: randomUUID() }
    for (const each of [call, second]) await store().requests.enqueue(each, { maxWaiting: 9, isValid: true })
    const limits = { maxCalls: 5, maxCostlyCalls: null, ceilingMicros: null }
    const lease = { owner: 'me', until: at(DAY_MS) }
    const taken = await store().requests.take(tenant.accountId, limits, { now: at(1), lease })
    assert.ok(taken !== null)
    const body = { kind: 'inline' as const, bytes: new Uint8Array([123, 125]) }
    const result = { contentType: 'application/json', body, sizeBytes: 2, costMicros: 7 }
    await store().calls.finish(taken.ref, {
      ...{ fate: 'keep', end: { kind: 'result', result }, chargeMicros: 0, memo: '', at: at(4) },
      ...{ replayUntil: null, expiresAt: null },
    })
    await store().requests.cancel(tenant.accountId, second.id, at(5), at(DAY_MS))
    const all = await told(tenant)
    assert.deepEqual(
      all.map(({ type, subject }) => [type, subject]),
      [
        ['model_call.completed', call.id],
        ['model_call.completed', second.id],
      ],
    )
    const [done, canceled] = all.map(({ facts }) => JSON.parse(facts))
    assert.deepEqual(done, {
      ...{ model: 'a/b', state: 'done', created_at: START.getTime(), started_at: at(1).getTime() },
      ...{
        completed_at: at(4).getTime(),
        refusal: null,
        content_type: 'application/json',
        size_bytes: 2,
        cost_micros: 7,
      },
    })
    assert.equal(canceled.state, 'canceled')
    assert.equal(typeof canceled.refusal.message, 'string')
  })

  test('are told once when the balance falls below their mark, by charges and not by holds', async () => {
    const tenant = await Tenant.metered(store(), { micros: 1000 })
    await store().webhooks.create(newEndpoint(tenant.accountId, { creditsLowMicros: 900 }), { max: 3 })
    await store().webhooks.create(newEndpoint(tenant.accountId, { createdAt: at(1) }), { max: 3 })
    const price = { perSecondMicros: 60, minimumMicros: 60, holdMicros: 200 }
    for (const count of [0, 1, 1]) {
      const { lease } = await tenant.run({ price }, at(1))
      await tenant.succeed(lease, at(1001))
      const low = (await told(tenant)).filter(({ type }) => type === 'credits.low')
      assert.equal(low.length, count)
      if (count > 0) assert.deepEqual(JSON.parse(low[0].facts), { balance_micros: 880, mark_micros: 900 })
    }
  })

  test('say of a job that an earlier result answered whose result it is, and so do lists of jobs', async () => {
    const { tenant } = await withEndpoint()
    const { lease } = await tenant.run({ keepsResult: true })
    const finish = { status: 'succeeded', from: ['running'], at: at(5), error: null, resultKey: 'k' } as const
    await store().jobs.commit(lease, { outputs: [newOutput()], finish })
    const job = tenant.newJob({ createdAt: at(9), metadata: { odd: '\u0000"' } })
    await store().jobs.answerAgain(job, { key: 'k', assetIds: [randomUUID()] }, null)
    const facts = (await told(tenant)).map(({ type, facts: text }) => [type, JSON.parse(text).reused_from])
    assert.deepEqual(facts, [
      ['job.succeeded', undefined],
      ['job.succeeded', lease.jobId],
    ])
    const listed = await store().summaries.findMany(tenant.accountId, [lease.jobId, job.id], at(10))
    const sources = new Map(listed.map(({ id, reusedFrom }) => [id, reusedFrom]))
    assert.deepEqual([sources.get(lease.jobId), sources.get(job.id)], [null, lease.jobId])
  })
}
