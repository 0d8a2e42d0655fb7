/** Reads and listings: what an account sees of its jobs, and what it must not see. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Job } from '../../../src/domain/jobs/job.ts'
import type { ListQuery } from '../../../src/domain/jobs/job-store.ts'
import { at, DAY_MS, START, type StoreOpener, shareStore, Tenant } from '../store-under-test.ts'

const ALL: ListQuery = { statuses: null, metadata: {}, limit: 100, after: null, now: START }

async function walk(tenant: Tenant, query: Partial<ListQuery>): Promise<Job[]> {
  const limit = query.limit ?? 3
  const seen: Job[] = []
  let after: ListQuery['after'] = null
  for (;;) {
    const found = await tenant.store.jobs.list(tenant.accountId, { ...ALL, ...query, limit, after })
    const page = found.slice(0, limit)
    seen.push(...page)
    if (found.length <= limit) return seen
    after = { createdAt: page[limit - 1].createdAt, id: page[limit - 1].id }
  }
}

const ids = (jobs: readonly Job[]) => jobs.map(({ id }) => id)

function newestFirst(jobs: readonly Job[]): Job[] {
  return [...jobs].sort((a, b) => b.createdAt.getTime() - a.createdAt.getTime() || (a.id < b.id ? 1 : -1))
}

export function testJobStoreReads(opener: StoreOpener): void {
  describe('reads', () => {
    const store = shareStore(opener)

    test("another account's job looks exactly like one that does not exist", async () => {
      const owner = await Tenant.create(store())
      const stranger = await Tenant.create(store())
      const { job, lease } = await owner.run()
      const log = { text: 'x', truncated: false, capturedAt: START, complete: true }
      await store().jobs.commit(lease, { log })
      const { accountId } = stranger
      assert.equal(await stranger.find(job.id), null)
      assert.equal(await store().jobs.findWorkflow(accountId, job.id, START), null)
      assert.equal(await store().jobs.findLog(accountId, job.id, START), null)
      assert.deepEqual(await store().jobs.cancel(accountId, job.id, START), { outcome: 'not_found' })
      assert.deepEqual(await store().jobs.list(accountId, ALL), [])
      assert.deepEqual(await store().jobs.findLog(owner.accountId, job.id, START), log)
      assert.equal((await owner.find(job.id))?.status, 'running')
    })

    test('a finished job past its retention is gone for every read, before any sweep', async () => {
      const tenant = await Tenant.create(store())
      const { job, lease } = await tenant.run()
      await tenant.succeed(lease)
      const past = at(7 * DAY_MS)
      assert.notEqual(await tenant.find(job.id, at(7 * DAY_MS - 1)), null)
      assert.equal(await tenant.find(job.id, past), null)
      assert.equal(await store().jobs.findWorkflow(tenant.accountId, job.id, past), null)
      assert.deepEqual(await store().jobs.list(tenant.accountId, { ...ALL, now: past }), [])
      assert.deepEqual(await store().jobs.cancel(tenant.accountId, job.id, past), { outcome: 'not_found' })
    })

    test('a page holds one job more than asked when there are more', async () => {
      const tenant = await Tenant.create(store())
      for (let count = 0; count < 4; count += 1) await tenant.submit()
      assert.equal((await store().jobs.list(tenant.accountId, { ...ALL, limit: 3 })).length, 4)
      assert.equal((await store().jobs.list(tenant.accountId, { ...ALL, limit: 4 })).length, 4)
      assert.equal((await store().jobs.list(tenant.accountId, { ...ALL, limit: 2 })).length, 3)
    })

    test('a walk shows every job once, newest first, also those of the same instant and of all states', async () => {
      const tenant = await Tenant.create(store())
      const jobs: Job[] = []
      for (let count = 0; count < 12; count += 1) {
        jobs.push(await tenant.submit({ createdAt: at(Math.floor(count / 4)) }))
      }
      const claim = await tenant.claim()
      await tenant.succeed({ jobId: claim?.job.id ?? '', leaseId: claim?.leaseId ?? '' })
      await tenant.claim()
      await store().jobs.cancel(tenant.accountId, jobs[5].id, START)
      assert.deepEqual(ids(await walk(tenant, {})), ids(newestFirst(jobs)))
    })

    test('a walk goes on without gap or repeat while jobs are added', async () => {
      const tenant = await Tenant.create(store())
      const jobs: Job[] = []
      for (let count = 0; count < 6; count += 1) jobs.push(await tenant.submit({ createdAt: at(count) }))
      const first = await store().jobs.list(tenant.accountId, { ...ALL, limit: 3 })
      await tenant.submit({ createdAt: at(10) })
      const last = first[2]
      const rest = await store().jobs.list(tenant.accountId, {
        ...ALL,
        after: { createdAt: last.createdAt, id: last.id },
      })
      assert.deepEqual([...ids(first.slice(0, 3)), ...ids(rest)], ids(newestFirst(jobs)))
    })

    test('a listing filters by status', async () => {
      const tenant = await Tenant.create(store())
      const { job: done, lease } = await tenant.run()
      await tenant.succeed(lease)
      const { job: running } = await tenant.run()
      const queued = await tenant.submit()
      const list = async (...statuses: Job['status'][]) =>
        new Set(ids(await store().jobs.list(tenant.accountId, { ...ALL, statuses })))
      assert.deepEqual(await list('succeeded'), new Set([done.id]))
      assert.deepEqual(await list('running', 'queued'), new Set([running.id, queued.id]))
      assert.deepEqual(await list('failed'), new Set())
    })

    test('a listing filters by metadata: every pair must match exactly, alone and with a status', async () => {
      const tenant = await Tenant.create(store())
      const stranger = await Tenant.create(store())
      await stranger.submit({ metadata: { scene: '1' } })
      const both = await tenant.submit({ metadata: { scene: '1', take: 'a' } })
      const { job: one } = await tenant.run({ metadata: { scene: '1', take: 'b' }, priority: 1 })
      await tenant.submit({ metadata: { scene: '11' } })
      await tenant.submit()
      const list = async (metadata: Record<string, string>, statuses: Job['status'][] | null = null) =>
        new Set(ids(await store().jobs.list(tenant.accountId, { ...ALL, metadata, statuses })))
      assert.deepEqual(await list({ scene: '1' }), new Set([both.id, one.id]))
      assert.deepEqual(await list({ scene: '1', take: 'a' }), new Set([both.id]))
      assert.deepEqual(await list({ scene: '1' }, ['running']), new Set([one.id]))
      assert.deepEqual(await list({ scene: '2' }), new Set())
    })

    test('a filter that matches few of very many labelled jobs still finds them all', async () => {
      const tenant = await Tenant.create(store(), { maxQueued: 5000 })
      const rare: Job[] = []
      for (let batch = 0; batch < 5; batch += 1) {
        await Promise.all(
          Array.from({ length: 499 }, () => tenant.submit({ createdAt: at(batch), metadata: { env: 'p' } })),
        )
        rare.push(await tenant.submit({ createdAt: at(batch), metadata: { env: 'p', rare: 'y' } }))
      }
      const metadata = { env: 'p', rare: 'y' }
      assert.deepEqual(ids(await walk(tenant, { metadata, limit: 2 })), ids(newestFirst(rare)))
    })

    test('a page agrees with single reads about every position in the queue', async () => {
      const tenant = await Tenant.create(store())
      for (let count = 0; count < 30; count += 1) {
        await tenant.submit({ priority: count % 7 === 0 ? 5 : 0, createdAt: at(count % 5) })
      }
      const page = await store().jobs.list(tenant.accountId, ALL)
      const single = await Promise.all(page.map(({ id }) => tenant.find(id)))
      assert.deepEqual(page, single)
    })
  })
}
