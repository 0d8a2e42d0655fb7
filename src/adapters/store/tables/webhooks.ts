/** Endpoints of webhooks, the messages to them, and every try of a message. */
import type {
  AttemptOutcome,
  DeliveryState,
  DisableReason,
  EndpointKind,
  EndpointState,
  MessageType,
} from '../../../domain/webhooks/webhook.ts'
import { bytes, type Column, integer, moment, named, nullable, stays, table, text } from './table.ts'

/** As a trigger looks for one: between spaces. */
export function toEventsText(events: readonly string[]): string {
  return ` ${events.join(' ')} `
}

const events: Column<readonly string[]> = {
  ...text(),
  decode: (stored) => String(stored).trim().split(' '),
  encode: toEventsText,
}

export const webhookEndpoint = table('webhook_endpoint', ['id'], {
  id: text(),
  accountId: text(),
  kind: text<EndpointKind>(),
  url: text(),
  description: text(),
  events,
  secret: nullable(bytes()),
  previousSecret: nullable(bytes()),
  previousUntil: nullable(moment()),
  state: text<EndpointState>(),
  reason: nullable(text<DisableReason>()),
  disabledAt: nullable(moment()),
  failingSince: nullable(moment()),
  creditsLowMicros: named('low_mark', nullable(integer())),
  createdAt: moment(),
  changedAt: moment(),
  usedAt: moment(),
})

export const webhookDelivery = table('webhook_delivery', ['seq'], {
  seq: integer(),
  id: text(),
  endpointId: text(),
  accountId: text(),
  type: text<MessageType>(),
  subject: text(),
  at: moment(),
  facts: text(),
  state: text<DeliveryState>(),
  attempts: integer('integer'),
  firstAt: nullable(moment()),
  nextAt: moment(),
  leaseId: stays('whoever held it has stopped: the message is tried anew', nullable(text())),
  endedAt: nullable(moment()),
})

export const webhookAttempt = table('webhook_attempt', ['deliveryId', 'number'], {
  deliveryId: text(),
  number: integer('integer'),
  at: moment(),
  tookMs: integer(),
  outcome: text<AttemptOutcome>(),
  status: nullable(integer('integer')),
  response: nullable(text()),
})
