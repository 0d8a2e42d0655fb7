/** How every account store behaves. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { type StoreOpener, shareStore, Tenant } from '../store-under-test.ts'

export function testAccountStore(opener: StoreOpener): void {
  describe('accounts', () => {
    const store = shareStore(opener)

    test('an unknown account has no use; a new one has none yet', async () => {
      assert.equal(await store().accounts.findUse(randomUUID()), null)
      const tenant = await Tenant.create(store())
      assert.deepEqual(await tenant.use(), { running: 0, queued: 0 })
    })

    test('new limits hold from then on and leave the counters alone', async () => {
      const tenant = await Tenant.create(store(), { maxRunning: 1 })
      for (let count = 0; count < 3; count += 1) await tenant.submit()
      await tenant.claim()
      assert.equal(await tenant.claim(), null)
      await store().accounts.put({ id: tenant.accountId, maxRunning: 2, maxQueued: 1 })
      assert.deepEqual(await tenant.use(), { running: 1, queued: 2 })
      assert.notEqual(await tenant.claim(), null)
      assert.deepEqual(await store().jobs.submit(tenant.newJob(), null), { outcome: 'queue_full' })
    })

    test('counters that are right need no repair', async () => {
      const tenant = await Tenant.create(store())
      await tenant.run()
      await tenant.submit()
      assert.equal(await store().accounts.repairCounters(), 0)
      assert.deepEqual(await tenant.use(), { running: 1, queued: 1 })
    })
  })
}
