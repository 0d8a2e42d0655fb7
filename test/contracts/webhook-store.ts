/** How every store of webhooks behaves: what becomes a message, who is given it, and what is kept of the tries. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import type { JobError } from '../../src/domain/jobs/job.ts'
import { type Endpoint, type NewHook, USUAL_EVENTS, WEBHOOK_EVENTS } from '../../src/domain/webhooks/webhook.ts'
import type { AttemptEnd, ClaimedDelivery } from '../../src/domain/webhooks/webhook-store.ts'
import {
  at,
  DAY_MS,
  newOutput,
  START,
  type StoreOpener,
  shareStore,
  Tenant,
  type WholeStoreUnderTest,
} from './store-under-test.ts'

const FAILURE: JobError = { code: 'x', message: 'no', nodeId: '3', classType: 'A', traceback: null }

function newEndpoint(accountId: string, fields: Partial<Endpoint> = {}): Endpoint {
  return {
    ...{ id: `whe_${randomUUID()}`, accountId, kind: 'account', url: 'https://a.example/hook', description: 'mine' },
    ...{ events: [...USUAL_EVENTS], secret: new Uint8Array([1, 2]), previousSecret: null, previousUntil: null },
    ...{ state: 'enabled', reason: null, disabledAt: null, failingSince: null, creditsLowMicros: null },
    ...{ createdAt: START, changedAt: START, ...fields },
  }
}

export function testWebhookStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('webhooks in the store', () => {
    const store = shareStore(opener)

    async function withEndpoint(fields: Partial<Endpoint> = {}) {
      const tenant = await Tenant.create(store())
      const endpoint = newEndpoint(tenant.accountId, fields)
      assert.equal(await store().webhooks.create(endpoint, { max: 3 }), true)
      return { tenant, endpoint }
    }

    /** Oldest first. */
    async function told({ accountId }: Tenant, endpointId?: string) {
      const filter = endpointId === undefined ? {} : { endpointId }
      const rows = await store().webhooks.deliveries(accountId, { limit: 100, ...filter })
      return rows.toReversed()
    }

    const typesOf = async (tenant: Tenant) => (await told(tenant)).map(({ type }) => type)

    async function claim(now: Date, { perEndpoint = 4, ...of }: { perEndpoint?: number; accountId: string }) {
      const lease = { leaseId: randomUUID(), now, until: new Date(now.getTime() + 30_000) }
      const claimed = await store().webhooks.claim({ ...lease, limit: 1000, perEndpoint })
      return claimed.filter(({ endpoint }) => endpoint.accountId === of.accountId)
    }

    function toEnd({ id, leaseId }: ClaimedDelivery, fields: Partial<AttemptEnd> = {}): AttemptEnd {
      const attempt = { at: at(10), tookMs: 5, outcome: 'delivered', status: 200, response: 'ok' } as const
      return { deliveryId: id, leaseId, attempt, result: { fate: 'delivered' }, disable: null, ...fields }
    }

    const failedTry = { at: at(10), tookMs: 5, outcome: 'refused', status: 500, response: 'down' } as const

    test('are given back as they were put in, to their account alone, up to a number', async () => {
      const { tenant, endpoint } = await withEndpoint({
        creditsLowMicros: 5,
        previousUntil: at(9),
        previousSecret: new Uint8Array([9]),
      })
      assert.deepEqual(await store().webhooks.find(tenant.accountId, endpoint.id), endpoint)
      const other = await Tenant.create(store())
      assert.equal(await store().webhooks.find(other.accountId, endpoint.id), null)
      assert.equal(
        await store().webhooks.change(other.accountId, endpoint.id, { url: 'https://b.example' }, START),
        null,
      )
      assert.equal(await store().webhooks.remove(other.accountId, endpoint.id), false)
      const changed = await store().webhooks.change(
        tenant.accountId,
        endpoint.id,
        { events: ['job.failed'], state: 'paused' },
        at(5),
      )
      assert.deepEqual(changed, { ...endpoint, events: ['job.failed'], state: 'paused', changedAt: at(5) })
      assert.deepEqual(await store().webhooks.list(tenant.accountId), [changed])
      for (const isRoom of [true, true, false])
        assert.equal(
          await store().webhooks.create(newEndpoint(tenant.accountId, { createdAt: at(1) }), { max: 3 }),
          isRoom,
        )
    })

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

    test('get messages of one job in order, and others beside them, as many at a time as they may', async () => {
      const { tenant } = await withEndpoint({ events: ['job.queued', 'job.started', 'job.succeeded'] })
      const { lease } = await tenant.run({}, at(1))
      await tenant.succeed(lease, at(2))
      await tenant.submit()
      const of = { accountId: tenant.accountId }
      const first = await claim(at(5), of)
      assert.deepEqual(
        first.map(({ type }) => type),
        ['job.queued', 'job.queued'],
      )
      assert.deepEqual(await claim(at(5), of), [])
      // One that failed is in the way of those behind it until its time comes; the other job is not.
      const [mine, other] = lease.jobId === first[0].subject ? first : first.toReversed()
      await store().webhooks.finish([
        toEnd(mine, { attempt: failedTry, result: { fate: 'retry', nextAt: at(1000) } }),
        toEnd(other),
      ])
      assert.deepEqual(await claim(at(999), of), [])
      const [again] = await claim(at(1000), of)
      assert.deepEqual([again.id, again.attempts, again.firstAt], [mine.id, 1, at(10)])
      await store().webhooks.finish([toEnd(again)])
      const [next] = await claim(at(1000), of)
      assert.equal(next.type, 'job.started')
      // A lease that lapsed is given to the next; the end under the old one counts only when it arrived.
      const [taken] = await claim(at(40_000), of)
      assert.equal(taken.id, next.id)
      await store().webhooks.finish([toEnd(next, { attempt: failedTry, result: { fate: 'failed' } })])
      assert.equal((await store().webhooks.delivery(tenant.accountId, next.id))?.delivery.state, 'pending')
      await store().webhooks.finish([toEnd(next)])
      assert.equal((await store().webhooks.delivery(tenant.accountId, next.id))?.delivery.state, 'delivered')
      assert.equal((await claim(at(40_000), of))[0].type, 'job.succeeded')
    })

    test('have few under way at a time, and one while they fail', async () => {
      const { tenant, endpoint } = await withEndpoint({ events: ['job.queued'] })
      for (let count = 0; count < 5; count++) await tenant.submit()
      const of = { accountId: tenant.accountId }
      const three = await claim(at(1), { ...of, perEndpoint: 3 })
      assert.equal(three.length, 3)
      assert.equal((await claim(at(1), { ...of, perEndpoint: 3 })).length, 0)
      const retry = { attempt: failedTry, result: { fate: 'retry', nextAt: at(2) } } as const
      await store().webhooks.finish(three.map((each) => toEnd(each, retry)))
      assert.deepEqual((await store().webhooks.find(tenant.accountId, endpoint.id))?.failingSince, at(10))
      const [alone, ...none] = await claim(at(3), { ...of, perEndpoint: 3 })
      assert.equal(none.length, 0)
      await store().webhooks.finish([toEnd(alone)])
      assert.equal((await store().webhooks.find(tenant.accountId, endpoint.id))?.failingSince, null)
      assert.equal((await claim(at(3), { ...of, perEndpoint: 3 })).length, 3)
    })

    test('that are gone get nothing more; others are told, and what failed can be sent again', async () => {
      const { tenant, endpoint } = await withEndpoint({ events: ['job.queued'] })
      const watcher = newEndpoint(tenant.accountId, { events: ['webhook.disabled'], createdAt: at(1) })
      await store().webhooks.create(watcher, { max: 3 })
      for (let count = 0; count < 2; count++) await tenant.submit()
      const [first] = await claim(at(5), { accountId: tenant.accountId, perEndpoint: 1 })
      const gone = { ...failedTry, outcome: 'gone', status: 410 } as const
      const end = toEnd(first, { attempt: gone, result: { fate: 'failed' }, disable: 'gone' })
      assert.deepEqual(await store().webhooks.finish([end]), [endpoint.id])
      const disabled = await store().webhooks.find(tenant.accountId, endpoint.id)
      assert.deepEqual([disabled?.state, disabled?.reason, disabled?.disabledAt], ['disabled', 'gone', at(10)])
      assert.deepEqual(
        (await told(tenant, endpoint.id)).map(({ state }) => state),
        ['failed', 'failed'],
      )
      const [notice] = await told(tenant, watcher.id)
      assert.deepEqual(JSON.parse(notice.facts), { webhook_id: endpoint.id, reason: 'gone' })
      await tenant.submit()
      assert.equal((await told(tenant, endpoint.id)).length, 2)

      const enabled = await store().webhooks.change(tenant.accountId, endpoint.id, { state: 'enabled' }, at(20))
      assert.deepEqual([enabled?.reason, enabled?.disabledAt, enabled?.failingSince], [null, null, null])
      const all = { from: START, to: at(1), onlyFailed: true }
      assert.equal(await store().webhooks.replayRange(tenant.accountId, endpoint.id, { ...all, to: START }, at(21)), 0)
      assert.equal(await store().webhooks.replayRange(tenant.accountId, endpoint.id, all, at(21)), 2)
      const again = await claim(at(21), { accountId: tenant.accountId })
      await store().webhooks.finish(again.map((each) => toEnd(each)))
      assert.equal(await store().webhooks.replayRange(tenant.accountId, endpoint.id, all, at(22)), 0)
      const once = await store().webhooks.replay(tenant.accountId, first.id, at(23))
      assert.deepEqual([once?.state, once?.nextAt], ['pending', at(23)])
      const kept = await store().webhooks.delivery(tenant.accountId, first.id)
      assert.deepEqual(
        kept?.attempts.map(({ number, outcome, status, response }) => [number, outcome, status, response]),
        [
          [1, 'gone', 410, 'down'],
          [2, 'delivered', 200, 'ok'],
        ],
      )
      const stranger = await Tenant.create(store())
      assert.equal(await store().webhooks.delivery(stranger.accountId, first.id), null)
      assert.equal(await store().webhooks.replay(stranger.accountId, first.id, at(23)), null)
    })

    test('are listed newest first by endpoint, job and state, page by page; old messages go', async () => {
      const { tenant, endpoint } = await withEndpoint({ events: ['job.queued'] })
      const jobs = [await tenant.submit(), await tenant.submit(), await tenant.submit()]
      const { webhooks } = store()
      const page = await webhooks.deliveries(tenant.accountId, { limit: 2 })
      assert.deepEqual(
        page.map(({ subject }) => subject),
        [jobs[2].id, jobs[1].id],
      )
      const rest = await webhooks.deliveries(tenant.accountId, { limit: 2, before: page[1].id })
      assert.deepEqual(
        rest.map(({ subject }) => subject),
        [jobs[0].id],
      )
      const ofJob = await webhooks.deliveries(tenant.accountId, { limit: 9, subject: jobs[1].id, state: 'pending' })
      assert.deepEqual(
        ofJob.map(({ subject }) => subject),
        [jobs[1].id],
      )
      assert.deepEqual(await webhooks.deliveries(tenant.accountId, { limit: 9, state: 'failed' }), [])
      assert.equal(await webhooks.hasPending(), true)
      assert.equal((await store().glance()).hasPendingMessages, true)
      assert.ok((await webhooks.backlog(100)) >= 3)
      const claimed = await claim(at(5), { accountId: tenant.accountId })
      await webhooks.finish(claimed.map((each) => toEnd(each)))
      await webhooks.sweep(at(10), 100)
      assert.equal((await told(tenant)).length, 3)
      await webhooks.sweep(at(11), 100)
      assert.equal((await told(tenant)).length, 0)
      const message = {
        id: `msg_${randomUUID()}`,
        type: 'webhook.test' as const,
        subject: 'x',
        at: at(12),
        facts: '{}',
      }
      for (let count = 0; count < 2; count++)
        await webhooks.enqueue({ ...message, endpointId: endpoint.id, accountId: tenant.accountId })
      assert.equal((await told(tenant)).length, 1)
      assert.equal(await webhooks.remove(tenant.accountId, endpoint.id), true)
      assert.equal((await told(tenant)).length, 0)
    })
  })
}
