/** How every idempotency store behaves; claims themselves are part of submit and mint. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { at, DAY_MS, keyClaim, START, type StoreOpener, shareStore, Tenant, withStore } from '../store-under-test.ts'

export function testIdempotencyStore(opener: StoreOpener): void {
  describe('idempotency keys', () => {
    const store = shareStore(opener)

    test('a key tells what it created, within its account and its life', async () => {
      const [tenant, stranger] = [await Tenant.create(store()), await Tenant.create(store())]
      const key = 'k'.repeat(255)
      const job = await tenant.submit({}, keyClaim(key))
      const holder = { jobId: job.id, assetId: null }
      assert.deepEqual(await store().keys.findKey(tenant.accountId, key, at(DAY_MS - 1)), holder)
      assert.equal(await store().keys.findKey(tenant.accountId, key, at(DAY_MS)), null)
      assert.equal(await store().keys.findKey(tenant.accountId, 'other', START), null)
      assert.equal(await store().keys.findKey(stranger.accountId, key, START), null)
    })
  })

  test('a sweep removes keys past their life, however many, and no others', () =>
    withStore(opener, async (store) => {
      const tenant = await Tenant.create(store)
      await Promise.all(Array.from({ length: 250 }, (_, index) => tenant.submit({}, keyClaim(`old-${index}`))))
      await tenant.submit({}, keyClaim('young', at(1)))
      assert.equal(await store.keys.sweepKeys(at(DAY_MS - 1)), 0)
      assert.equal(await store.keys.sweepKeys(at(DAY_MS)), 250)
      // Asked as of the beginning: the swept keys themselves must be gone.
      assert.equal(await store.keys.findKey(tenant.accountId, 'old-0', START), null)
      assert.notEqual(await store.keys.findKey(tenant.accountId, 'young', START), null)
    }))
}
