/** Endpoints of webhooks, their messages and tries as both stores keep them. Columns and fields stand in the same order. */
import type {
  Attempt,
  AttemptOutcome,
  Delivery,
  DeliveryState,
  DisableReason,
  Endpoint,
  EndpointKind,
  EndpointState,
  MessageType,
} from '../../../domain/webhooks/webhook.ts'
import type { ClaimedDelivery, EndpointChange } from '../../../domain/webhooks/webhook-store.ts'
import { toDate } from './row-date.ts'

export const ENDPOINT_COLUMNS =
  'id, account_id, kind, url, description, events, secret, previous_secret, previous_until, state, reason, disabled_at, ' +
  'failing_since, low_mark, created_at, changed_at'

export type EndpointRow = readonly [
  id: string,
  accountId: string,
  kind: EndpointKind,
  url: string,
  description: string,
  events: string,
  secret: Uint8Array | null,
  previousSecret: Uint8Array | null,
  previousUntil: number | null,
  state: EndpointState,
  reason: DisableReason | null,
  disabledAt: number | null,
  failingSince: number | null,
  lowMark: number | null,
  createdAt: number,
  changedAt: number,
]

export function toEndpoint(row: EndpointRow): Endpoint {
  const [id, accountId, kind, url, description, events, secret, previousSecret, previousUntil, state, ...rest] = row
  const [reason, disabledAt, failingSince, creditsLowMicros, createdAt, changedAt] = rest
  return {
    ...{ id, accountId, kind, url, description, events: events.trim().split(' ') },
    ...{ secret: toBytes(secret), previousSecret: toBytes(previousSecret), previousUntil: toDate(previousUntil) },
    ...{ state, reason, disabledAt: toDate(disabledAt), failingSince: toDate(failingSince) },
    ...{ creditsLowMicros, createdAt: new Date(createdAt), changedAt: new Date(changedAt) },
  }
}

/** Plain bytes, whatever the driver makes of them. */
function toBytes(bytes: Uint8Array | null): Uint8Array | null {
  return bytes === null ? null : new Uint8Array(bytes)
}

export function toEndpointRow(endpoint: Endpoint): EndpointRow {
  const { id, accountId, kind, url, description, secret, previousSecret, previousUntil, state, reason } = endpoint
  return [
    ...([id, accountId, kind, url, description, toEventsText(endpoint.events)] as const),
    ...([secret, previousSecret, previousUntil?.getTime() ?? null, state, reason] as const),
    ...([endpoint.disabledAt?.getTime() ?? null, endpoint.failingSince?.getTime() ?? null] as const),
    ...([endpoint.creditsLowMicros, endpoint.createdAt.getTime(), endpoint.changedAt.getTime()] as const),
  ]
}

/** As a trigger looks for them. */
export function toEventsText(events: readonly string[]): string {
  return ` ${events.join(' ')} `
}

/** The endpoint as it is after a change. */
export function toChanged(endpoint: Endpoint, change: EndpointChange, now: Date): Endpoint {
  const isEnabled = change.state === 'enabled'
  const clean = isEnabled ? { reason: null, disabledAt: null, failingSince: null } : {}
  return { ...endpoint, ...change, ...clean, changedAt: now }
}

export const DELIVERY_COLUMNS =
  'id, type, subject, at, facts, endpoint_id, state, attempts, next_at, ended_at, first_at, lease_id'

export type DeliveryRow = readonly [
  id: string,
  type: MessageType,
  subject: string,
  at: number,
  facts: string,
  endpointId: string,
  state: DeliveryState,
  attempts: number,
  nextAt: number,
  endedAt: number | null,
  firstAt: number | null,
  leaseId: string | null,
]

export function toDelivery(row: DeliveryRow): Delivery {
  const [id, type, subject, at, facts, endpointId, state, attempts, nextAt, endedAt] = row
  return {
    ...{ id, type, subject, at: new Date(at), facts, endpointId, state, attempts },
    ...{ nextAt: state === 'pending' ? new Date(nextAt) : null, endedAt: toDate(endedAt) },
  }
}

export function toClaimed(row: DeliveryRow, endpoint: Endpoint): ClaimedDelivery {
  const [id, type, subject, at, facts, , , attempts, , , firstAt, leaseId] = row
  const message = { id, type, subject, at: new Date(at), facts }
  return { ...message, attempts, firstAt: toDate(firstAt), leaseId: leaseId ?? '', endpoint }
}

export const ATTEMPT_COLUMNS = 'number, at, took_ms, outcome, status, response'

export type AttemptRow = readonly [
  number: number,
  at: number,
  tookMs: number,
  outcome: AttemptOutcome,
  status: number | null,
  response: string | null,
]

export function toAttempt([number, at, tookMs, outcome, status, response]: AttemptRow): Attempt {
  return { number, at: new Date(at), tookMs, outcome, status, response }
}
