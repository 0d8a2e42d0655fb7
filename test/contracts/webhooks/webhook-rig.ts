/** What the suites about webhooks share: endpoints of new accounts, what was written for them, claims and ends of tries. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { type Endpoint, USUAL_EVENTS } from '../../../src/domain/webhooks/webhook.ts'
import type { AttemptEnd, ClaimedDelivery } from '../../../src/domain/webhooks/webhook-store.ts'
import { at, START, Tenant, type WholeStoreUnderTest } from '../store-under-test.ts'

export function newEndpoint(accountId: string, fields: Partial<Endpoint> = {}): Endpoint {
  return {
    ...{ id: `whe_${randomUUID()}`, accountId, kind: 'account', url: 'https://a.example/hook', description: 'mine' },
    ...{ events: [...USUAL_EVENTS], secret: new Uint8Array([1, 2]), previousSecret: null, previousUntil: null },
    ...{ state: 'enabled', reason: null, disabledAt: null, failingSince: null, creditsLowMicros: null },
    ...{ createdAt: START, changedAt: START, ...fields },
  }
}

export type WebhookRig = ReturnType<typeof createWebhookRig>

export function createWebhookRig(store: () => WholeStoreUnderTest) {
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

  async function claim(
    now: Date,
    { perEndpoint = 4, knowsForms = true, ...of }: { perEndpoint?: number; knowsForms?: boolean; accountId: string },
  ) {
    const lease = { leaseId: randomUUID(), now, until: new Date(now.getTime() + 30_000) }
    const claimed = await store().webhooks.claim({ ...lease, limit: 1000, perEndpoint, knowsForms })
    return claimed.filter(({ endpoint }) => endpoint.accountId === of.accountId)
  }

  function toEnd({ id, leaseId }: ClaimedDelivery, fields: Partial<AttemptEnd> = {}): AttemptEnd {
    const attempt = { at: at(10), tookMs: 5, outcome: 'delivered', status: 200, response: 'ok' } as const
    return { deliveryId: id, leaseId, attempt, result: { fate: 'delivered' }, disable: null, ...fields }
  }

  const failedTry = { at: at(10), tookMs: 5, outcome: 'refused', status: 500, response: 'down' } as const

  return { store, withEndpoint, told, typesOf, claim, toEnd, failedTry }
}
