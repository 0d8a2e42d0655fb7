/** The end of retention, and the counts that span all accounts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { at, DAY_MS, hashOf, newOutput, type StoreOpener, Tenant, withStore } from '../store-under-test.ts'

const WEEK_MS = 7 * DAY_MS

export function testJobStoreSweeps(opener: StoreOpener): void {
  test('live jobs past their retention expire; they stay readable until the grace is over, then everything goes', () =>
    withStore(opener, async (store) => {
      const tenant = await Tenant.create(store)
      const { job: running, lease } = await tenant.run()
      const { job: canceling } = await tenant.run()
      await store.jobs.cancel(tenant.accountId, canceling.id, at(0))
      const queued = await tenant.submit({ metadata: { a: 'b' } })
      const young = await tenant.submit({ createdAt: at(DAY_MS) })
      assert.deepEqual(await store.jobs.expire(at(WEEK_MS - 1), 10), [])
      const touched = [...(await store.jobs.expire(at(WEEK_MS), 2)), ...(await store.jobs.expire(at(WEEK_MS), 10))]
      assert.deepEqual(new Set(touched.map(({ jobId }) => jobId)), new Set([running.id, canceling.id, queued.id]))
      assert.ok(touched.every(({ status }) => status === 'expired'))
      assert.deepEqual(await store.jobs.commit(lease, { outputs: [newOutput()] }), { outcome: 'lost' })
      assert.deepEqual(await tenant.use(), { running: 0, queued: 1 })

      const found = await tenant.find(queued.id, at(WEEK_MS + 10))
      assert.equal(found?.status, 'expired')
      assert.deepEqual(found.completedAt, at(WEEK_MS))
      const early = { now: at(WEEK_MS + 10), expiredBefore: at(WEEK_MS - 1), limit: 10 }
      assert.equal(await store.jobs.remove(early), 0)
      assert.equal(await store.jobs.remove({ ...early, expiredBefore: at(WEEK_MS) }), 3)
      assert.equal(await tenant.find(queued.id, at(WEEK_MS + 10)), null)
      const query = { statuses: null, metadata: { a: 'b' }, limit: 10, after: null, now: at(0) }
      assert.deepEqual(await store.jobs.list(tenant.accountId, query), [])
      assert.equal((await tenant.find(young.id, at(WEEK_MS + 10)))?.status, 'queued')
    }))

  test('removing a job removes its workflow, log and outputs, and lets go of blobs that nothing else holds', () =>
    withStore(opener, async (store) => {
      const tenant = await Tenant.create(store)
      const { job, lease } = await tenant.run()
      const [own, shared] = [newOutput({ hash: hashOf('own') }), newOutput({ hash: hashOf('shared') })]
      const log = { text: 'x', truncated: false, capturedAt: at(0), complete: true }
      await store.jobs.commit(lease, { outputs: [own, shared], log })
      await tenant.succeed(lease)
      const { lease: longer } = await tenant.run({ createdAt: at(DAY_MS) })
      await store.jobs.commit(longer, { outputs: [newOutput({ hash: shared.hash })] })

      assert.equal(await store.jobs.remove({ now: at(WEEK_MS - 1), expiredBefore: at(0), limit: 10 }), 0)
      assert.equal(await store.jobs.remove({ now: at(WEEK_MS), expiredBefore: at(0), limit: 10 }), 1)
      // Asked as of the beginning, when the job was still retained: its rows themselves must be gone.
      assert.equal(await tenant.find(job.id), null)
      assert.equal(await store.jobs.findWorkflow(tenant.accountId, job.id, at(0)), null)
      assert.equal(await store.jobs.findLog(tenant.accountId, job.id, at(0)), null)
      assert.equal(await store.assets.find(tenant.accountId, own.assetId, at(0)), null)
      assert.deepEqual(await store.assets.retireBlobs(at(WEEK_MS + 1), 10), [own.hash])
      assert.deepEqual(await store.assets.knownBlobs([own.hash, shared.hash]), [shared.hash])
    }))

  test('removal goes on over several calls of a small limit', () =>
    withStore(opener, async (store) => {
      const tenant = await Tenant.create(store)
      for (let count = 0; count < 5; count += 1) {
        const job = await tenant.submit()
        await store.jobs.cancel(tenant.accountId, job.id, at(0))
      }
      const options = { now: at(WEEK_MS), expiredBefore: at(0), limit: 2 }
      assert.deepEqual(
        [await store.jobs.remove(options), await store.jobs.remove(options), await store.jobs.remove(options)],
        [2, 2, 1],
      )
      assert.equal((await store.jobs.countByStatus()).canceled, 0)
    }))

  test('counts by status span all accounts', () =>
    withStore(opener, async (store) => {
      const [one, two] = [await Tenant.create(store), await Tenant.create(store)]
      const { job: canceling } = await one.run()
      await store.jobs.cancel(one.accountId, canceling.id, at(0))
      await one.run()
      await two.succeed((await two.run()).lease)
      const canceled = await two.submit()
      await store.jobs.cancel(two.accountId, canceled.id, at(0))
      await one.submit()
      await two.submit()
      const counts = { queued: 2, running: 1, canceling: 1, succeeded: 1, canceled: 1, failed: 0, expired: 0 }
      assert.deepEqual({ ...(await store.jobs.countByStatus()) }, counts)
    }))
}
