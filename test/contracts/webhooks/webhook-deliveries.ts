/** How messages are given out: in order, few at a time, again after a failure, until they are delivered, given up or swept. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { at, START, Tenant } from '../store-under-test.ts'
import { newEndpoint, type WebhookRig } from './webhook-rig.ts'

export function testWebhookDeliveries({ store, withEndpoint, told, claim, toEnd, failedTry }: WebhookRig): void {
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
}
