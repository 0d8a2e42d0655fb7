/** Submit, keys, the queue bound and the position in the queue. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { at, DAY_MS, hashOf, keyClaim, START, type StoreOpener, shareStore, Tenant } from '../store-under-test.ts'

export function testJobStoreSubmits(opener: StoreOpener): void {
  describe('submit', () => {
    const store = shareStore(opener)

    test('a submitted job is queued, first in line, and reads back as it was answered', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit({ metadata: { scene: '12', 'a.b': 'ü' }, priority: -5 })
      assert.equal(job.status, 'queued')
      assert.equal(job.queuePosition, 1)
      assert.equal(job.attempt, 0)
      assert.deepEqual(await tenant.find(job.id), job)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 1 })
    })

    test('the workflow text comes back unchanged', async () => {
      const tenant = await Tenant.create(store())
      const workflow = '{"1":{"seed":18446744073709551615,"x":1.0,"t":"\\u0000 é 🙂"}}'
      const job = await tenant.submit({ workflow })
      assert.equal(await store().jobs.findWorkflow(tenant.accountId, job.id, START), workflow)
    })

    test('a key is single use: the second submit is refused with the holder and creates nothing', async () => {
      const tenant = await Tenant.create(store())
      const job = await tenant.submit({}, keyClaim('k'))
      const again = await store().jobs.submit(tenant.newJob(), keyClaim('k', at(1000)))
      assert.deepEqual(again, { outcome: 'key_reused', holder: { jobId: job.id, assetId: null } })
      assert.deepEqual(await tenant.use(), { running: 0, queued: 1 })
    })

    test('of many simultaneous submits with one key exactly one is accepted', async () => {
      const tenant = await Tenant.create(store())
      const outcomes = await Promise.all(
        Array.from({ length: 20 }, () => store().jobs.submit(tenant.newJob(), keyClaim('k'))),
      )
      assert.equal(outcomes.filter(({ outcome }) => outcome === 'queued').length, 1)
      assert.equal(outcomes.filter(({ outcome }) => outcome === 'key_reused').length, 19)
      assert.deepEqual(await tenant.use(), { running: 0, queued: 1 })
    })

    test('a key is free again after its life, and the same key of another account is another key', async () => {
      const tenant = await Tenant.create(store())
      const other = await Tenant.create(store())
      await tenant.submit({}, keyClaim('k'))
      await other.submit({}, keyClaim('k'))
      const job = await tenant.submit({}, keyClaim('k', at(DAY_MS)))
      const holder = await store().keys.findKey(tenant.accountId, 'k', at(DAY_MS + 1))
      assert.deepEqual(holder, { jobId: job.id, assetId: null })
    })

    test('a full queue refuses, leaves the key free, and has room again after a cancel', async () => {
      const tenant = await Tenant.create(store(), { maxQueued: 2 })
      const first = await tenant.submit()
      await tenant.submit()
      assert.deepEqual(await store().jobs.submit(tenant.newJob(), keyClaim('k')), { outcome: 'queue_full' })
      assert.equal(await store().keys.findKey(tenant.accountId, 'k', START), null)
      await store().jobs.cancel(tenant.accountId, first.id, START)
      await tenant.submit({}, keyClaim('k'))
      assert.deepEqual(await tenant.use(), { running: 0, queued: 2 })
    })

    test('a running job does not fill the queue', async () => {
      const tenant = await Tenant.create(store(), { maxQueued: 1 })
      await tenant.run()
      await tenant.submit()
      assert.deepEqual(await tenant.use(), { running: 1, queued: 1 })
    })

    test('a submit for an unknown account fails and creates nothing', async () => {
      const tenant = await Tenant.create(store())
      const job = tenant.newJob({ accountId: 'nobody' })
      await assert.rejects(store().jobs.submit(job, null))
      assert.equal(await store().jobs.find('nobody', job.id, START), null)
    })

    test('inputs come back with the claim, in order', async () => {
      const tenant = await Tenant.create(store())
      const inputs = ['b.png', 'a.png'].map((name) => ({
        name,
        hash: hashOf(name),
        sizeBytes: 7,
        contentType: 'image/png',
      }))
      await tenant.submit({ inputs })
      assert.deepEqual((await tenant.claim())?.inputs, inputs)
    })

    test('the position in the queue counts higher priorities first, then submit order, within the account and pool', async () => {
      const tenant = await Tenant.create(store())
      const neighbour = await tenant.neighbour()
      const plain = await tenant.submit()
      await neighbour.submit({ priority: 100 })
      const later = await tenant.submit()
      const urgent = await tenant.submit({ priority: 10 })
      const last = await tenant.submit({ priority: -1 })
      assert.deepEqual(
        [plain, later, urgent, last].map(({ queuePosition }) => queuePosition),
        [1, 2, 1, 4],
      )
      const elsewhere = await tenant.submit({ pool: `${tenant.pool}-other` })
      assert.equal(elsewhere.queuePosition, 1)
      assert.equal((await tenant.submit()).queuePosition, 4)
      const found = await Promise.all([plain, later, urgent, last].map(({ id }) => tenant.find(id)))
      assert.deepEqual(
        found.map((job) => job?.queuePosition),
        [2, 3, 1, 5],
      )
    })

    test('the position is exact for a thousand jobs and never falls behind the end of a longer queue', async () => {
      const tenant = await Tenant.create(store(), { maxQueued: 5000 })
      const jobs = await Promise.all(Array.from({ length: 3000 }, () => tenant.submit()))
      const positions = await Promise.all(jobs.map(async ({ id }) => (await tenant.find(id))?.queuePosition ?? 0))
      assert.deepEqual(
        positions.slice(0, 1000),
        Array.from({ length: 1000 }, (_, index) => index + 1),
      )
      assert.deepEqual(
        positions.slice(-1000),
        Array.from({ length: 1000 }, (_, index) => index + 2001),
      )
      for (const position of positions.slice(1000, 2000)) assert.ok(position > 1000 && position <= 2000)
    })
  })
}
