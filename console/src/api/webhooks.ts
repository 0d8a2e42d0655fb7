/** Webhooks of the account, and the messages to them. */
import { getJson, send } from './client.ts'

const WEBHOOKS = '/api/v2/webhooks'

export interface Webhook {
  readonly id: string
  readonly url: string
  readonly description: string
  readonly events: readonly string[]
  readonly status: 'enabled' | 'paused' | 'disabled'
  readonly disabled_reason: 'gone' | 'failing' | null
  readonly disabled_at: string | null
  readonly failing_since: string | null
  /** Until when the secret before the last rotation signs, too. */
  readonly secret_overlap_until: string | null
  readonly credits_low_usd: number | null
  readonly created_at: string
}

export interface Delivery {
  readonly id: string
  readonly webhook_id: string
  readonly type: string
  /** The job or the call that it is about. */
  readonly job_id: string
  readonly occurred_at: string
  readonly status: 'pending' | 'delivered' | 'failed'
  readonly attempts: number
  readonly next_attempt_at: string | null
  readonly ended_at: string | null
}

export interface DeliveryAttempt {
  readonly number: number
  readonly at: string
  readonly duration_ms: number
  readonly outcome: string
  readonly http_status: number | null
  /** The beginning of what it answered; null: nothing came. */
  readonly response: string | null
}

export interface WebhookWish {
  readonly url: string
  readonly description: string
  readonly events: readonly string[]
  readonly credits_low_usd: number | null
}

export const listWebhooks = (signal?: AbortSignal) =>
  getJson<{ readonly webhooks: readonly Webhook[] }>(WEBHOOKS, signal)

const at = (id: string) => `${WEBHOOKS}/${encodeURIComponent(id)}`

export const getWebhook = (id: string, signal?: AbortSignal) => getJson<Webhook>(at(id), signal)

/** The secret is only in the answer that made it. */
export const createWebhook = (wish: WebhookWish) => send<Webhook & { readonly secret: string }>('POST', WEBHOOKS, wish)

export const changeWebhook = (id: string, change: Partial<WebhookWish> & { readonly status?: 'enabled' | 'paused' }) =>
  send<Webhook>('PATCH', at(id), change)

export const deleteWebhook = (id: string) => send<null>('DELETE', at(id))

export const rotateWebhook = (id: string, overlapSeconds: number) =>
  send<{ readonly secret: string }>('POST', `${at(id)}/rotate`, { overlap_seconds: overlapSeconds })

export const testWebhook = (id: string) => send<{ readonly delivery_id: string }>('POST', `${at(id)}/test`)

interface DeliveryPage {
  readonly deliveries: readonly Delivery[]
  readonly next: string | null
}

export const listDeliveries = (query: URLSearchParams, signal?: AbortSignal) =>
  getJson<DeliveryPage>(`${WEBHOOKS}/deliveries?${query}`, signal)

export const getDelivery = (id: string, signal?: AbortSignal) =>
  getJson<Delivery & { readonly attempt_list: readonly DeliveryAttempt[] }>(
    `${WEBHOOKS}/deliveries/${encodeURIComponent(id)}`,
    signal,
  )

export const replayDelivery = (id: string) =>
  send<Delivery>('POST', `${WEBHOOKS}/deliveries/${encodeURIComponent(id)}/replay`)
