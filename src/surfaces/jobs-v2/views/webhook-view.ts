/** Webhooks in the words of the wire. Pure. */
import type { Attempt, Delivery, Endpoint } from '../../../domain/webhooks/webhook.ts'

const MICROS_PER_USD = 1_000_000

export function toWebhookView(endpoint: Endpoint) {
  const { id, url, description, events, creditsLowMicros } = endpoint
  return {
    ...{ id, url, description, events },
    status: endpoint.state,
    disabled_reason: endpoint.reason,
    disabled_at: endpoint.disabledAt?.toISOString() ?? null,
    failing_since: endpoint.failingSince?.toISOString() ?? null,
    secret_overlap_until: endpoint.previousUntil?.toISOString() ?? null,
    credits_low_usd: creditsLowMicros === null ? null : creditsLowMicros / MICROS_PER_USD,
    created_at: endpoint.createdAt.toISOString(),
    updated_at: endpoint.changedAt.toISOString(),
  }
}

/** null stays null, and what is left out is left out. */
export function toMicros(usd: number | null): number | null {
  return usd === null ? null : Math.round(usd * MICROS_PER_USD)
}

export function toDeliveryView(delivery: Delivery) {
  const { id, endpointId, type, subject, state, attempts } = delivery
  return {
    id,
    webhook_id: endpointId,
    type,
    job_id: subject,
    occurred_at: delivery.at.toISOString(),
    status: state,
    attempts,
    next_attempt_at: delivery.nextAt?.toISOString() ?? null,
    ended_at: delivery.endedAt?.toISOString() ?? null,
  }
}

export function toAttemptView({ number, at, tookMs, outcome, status, response }: Attempt) {
  return { number, at: at.toISOString(), duration_ms: tookMs, outcome, http_status: status, response }
}
