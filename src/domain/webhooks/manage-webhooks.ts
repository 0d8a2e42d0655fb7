/** The endpoints of an account in its own hands. An id that is not its own looks like one that does not exist. */
import type { Clock } from '../../../lib/clock.ts'
import type { NewId } from '../../../lib/ids.ts'
import { invalidField, ServiceError } from '../errors.ts'
import { mustBeAddress, type WebhookSecrets } from './job-hooks.ts'
import type { WebhookSender } from './sender.ts'
import type { Attempt, Delivery, Endpoint } from './webhook.ts'
import type { DeliveryQuery, EndpointChange, ReplayRange, WebhookStore } from './webhook-store.ts'

interface EndpointWish {
  readonly url: string
  readonly description: string
  readonly events: readonly string[]
  readonly creditsLowMicros: number | null
  /** null: one is made. */
  readonly secret: Uint8Array | null
}

type EndpointEdit = Pick<EndpointChange, 'url' | 'description' | 'events' | 'creditsLowMicros' | 'state'>

/** Shown once: it cannot be read later. */
interface ShownEndpoint {
  readonly endpoint: Endpoint
  readonly secret: Uint8Array
}

export interface Webhooks {
  /** Throws invalid_field. */
  create(accountId: string, wish: EndpointWish): Promise<ShownEndpoint>
  list(accountId: string): Promise<readonly Endpoint[]>
  /** The following throw not_found. */
  find(accountId: string, id: string): Promise<Endpoint>
  change(accountId: string, id: string, edit: EndpointEdit): Promise<Endpoint>
  /** For `overlapMs`, messages are signed with the old secret as well as the new one. */
  rotate(accountId: string, id: string, options: { readonly overlapMs: number }): Promise<ShownEndpoint>
  remove(accountId: string, id: string): Promise<void>
  /** Sends a test message, whatever events the endpoint asks for. Returns its id. */
  test(accountId: string, id: string): Promise<string>
  deliveries(accountId: string, query: DeliveryQuery): Promise<readonly Delivery[]>
  delivery(
    accountId: string,
    id: string,
  ): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] }>
  replay(accountId: string, id: string): Promise<Delivery>
  replayRange(accountId: string, endpointId: string, range: ReplayRange): Promise<number>
  /** Signs messages to addresses that came with a job and without a secret of their own. */
  commonSecret(accountId: string): Uint8Array
}

interface WebhooksDeps {
  readonly store: WebhookStore
  readonly sender: Pick<WebhookSender, 'refusalOf'>
  readonly secrets: WebhookSecrets
  readonly newId: NewId
  readonly clock: Clock
  /** Called when a message is due now. */
  readonly wake: () => void
}

const MAX_ENDPOINTS = 50

export function createWebhooks(deps: WebhooksDeps): Webhooks {
  const { store, sender, secrets, newId, clock, wake } = deps

  async function find(accountId: string, id: string): Promise<Endpoint> {
    return mustBeThere(await store.find(accountId, id))
  }

  return {
    async create(accountId, { url, description, events, creditsLowMicros, secret: given }) {
      mustBeAddress(sender, url, 'url')
      const id = `whe_${newId().replaceAll('-', '')}`
      const [secret, now] = [given ?? secrets.make(), clock.now()]
      const endpoint: Endpoint = {
        ...{ id, accountId, kind: 'account', url, description, events, creditsLowMicros },
        ...{ secret: secrets.seal(secret, id), previousSecret: null, previousUntil: null },
        ...{ state: 'enabled', reason: null, disabledAt: null, failingSince: null, createdAt: now, changedAt: now },
      }
      if (await store.create(endpoint, { max: MAX_ENDPOINTS })) return { endpoint, secret }
      throw invalidField('url', `cannot be added: an account has at most ${MAX_ENDPOINTS} webhooks; delete one first`)
    },
    list: (accountId) => store.list(accountId),
    find,
    async change(accountId, id, edit) {
      if (edit.url !== undefined) mustBeAddress(sender, edit.url, 'url')
      const changed = mustBeThere(await store.change(accountId, id, edit, clock.now()))
      wake()
      return changed
    },
    async rotate(accountId, id, { overlapMs }) {
      const { secret: previousSecret } = await find(accountId, id)
      const [secret, now] = [secrets.make(), clock.now()]
      const change = {
        secret: secrets.seal(secret, id),
        previousSecret: overlapMs > 0 ? previousSecret : null,
        previousUntil: overlapMs > 0 ? new Date(now.getTime() + overlapMs) : null,
      }
      return { endpoint: mustBeThere(await store.change(accountId, id, change, now)), secret }
    },
    async remove(accountId, id) {
      if (!(await store.remove(accountId, id))) throw notFound()
    },
    async test(accountId, endpointId) {
      const { state } = await find(accountId, endpointId)
      if (state !== 'enabled') throw invalidField('status', `is ${state}; enable the webhook before you test it`)
      const id = `msg_${newId().replaceAll('-', '')}`
      const facts = JSON.stringify({ webhook_id: endpointId })
      await store.enqueue({ id, endpointId, accountId, type: 'webhook.test', subject: id, at: clock.now(), facts })
      wake()
      return id
    },
    deliveries: (accountId, query) => store.deliveries(accountId, query),
    delivery: async (accountId, id) => mustBeThere(await store.delivery(accountId, id)),
    async replay(accountId, id) {
      const replayed = mustBeThere(await store.replay(accountId, id, clock.now()))
      wake()
      return replayed
    },
    async replayRange(accountId, endpointId, range) {
      await find(accountId, endpointId)
      const count = await store.replayRange(accountId, endpointId, range, clock.now())
      wake()
      return count
    },
    commonSecret: (accountId) => secrets.common(accountId),
  }
}

function mustBeThere<Thing>(thing: Thing | null): Thing {
  if (thing === null) throw notFound()
  return thing
}

function notFound(): ServiceError {
  return new ServiceError('not_found', 'there is no such webhook')
}
