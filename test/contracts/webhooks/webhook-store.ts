/** How every store of webhooks behaves: endpoints, what becomes a message, who is given it, and what is kept of the tries. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { at, START, type StoreOpener, shareStore, Tenant, type WholeStoreUnderTest } from '../store-under-test.ts'
import { testWebhookDeliveries } from './webhook-deliveries.ts'
import { testWebhookMessages } from './webhook-messages.ts'
import { createWebhookRig, newEndpoint } from './webhook-rig.ts'

export function testWebhookStore(opener: StoreOpener<WholeStoreUnderTest>): void {
  describe('webhooks in the store', () => {
    const rig = createWebhookRig(shareStore(opener))
    const { store, withEndpoint } = rig

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

    testWebhookMessages(rig)
    testWebhookDeliveries(rig)
  })
}
