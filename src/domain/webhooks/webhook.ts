/** Webhooks: addresses that get a message when something has happened, and the messages. */
import type { JsonObject } from '../../../lib/json/lossless-json.ts'

/** The events that an endpoint gets by default. */
export const USUAL_EVENTS = [
  ...(['job.succeeded', 'job.failed', 'job.canceled', 'job.expired'] as const),
  ...(['model_call.completed', 'credits.low', 'budget.threshold'] as const),
] as const
/** Frequent, or of use to few: only where they are asked for. */
const OTHER_EVENTS = ['job.queued', 'job.started', 'output.created', 'webhook.disabled'] as const
export const WEBHOOK_EVENTS = [...USUAL_EVENTS, ...OTHER_EVENTS] as const
type WebhookEvent = (typeof WEBHOOK_EVENTS)[number]

/** What a message says has happened; the last ones are about the service itself. */
export type MessageType = WebhookEvent | 'webhook.test' | 'usage.events' | 'pool.workers_wanted' | 'pool.workers_idle'

/** account: made by its owner. job: came with a job or a call. operator: of the configuration. */
export type EndpointKind = 'account' | 'job' | 'operator'
/** paused: by its owner. disabled: by the service. */
export type EndpointState = 'enabled' | 'paused' | 'disabled'
/** gone: it answered 410. failing: nothing has arrived for as long as messages are tried. */
export type DisableReason = 'gone' | 'failing'

/** The secrets of an endpoint, sealed. null: the common secret of its account. */
export interface SealedSecrets {
  readonly secret: Uint8Array | null
  /** The one before it, which signs as well until then. */
  readonly previousSecret: Uint8Array | null
  readonly previousUntil: Date | null
}

export interface Endpoint extends SealedSecrets {
  readonly id: string
  readonly accountId: string
  readonly kind: EndpointKind
  readonly url: string
  /** Of one that came with a job: the form of its messages, or nothing. */
  readonly description: string
  readonly events: readonly string[]
  readonly state: EndpointState
  readonly reason: DisableReason | null
  readonly disabledAt: Date | null
  readonly failingSince: Date | null
  /** Gets `credits.low` when the balance falls below this; null: never. */
  readonly creditsLowMicros: number | null
  readonly createdAt: Date
  readonly changedAt: Date
}

/** What messages to an address are written as, where that is not in the words of the service. */
export interface Form {
  /** One that a surface knows. */
  readonly name: string
  /** Scheme, host and mount prefix at which the caller reached the service: what addresses in the message begin with. */
  readonly base: string
}

/** What a message says in another form; null: it cannot be said in it. */
export type TellAs = (
  message: Message,
  to: { readonly accountId: string; readonly base: string },
) => Promise<JsonObject | null>

/** An endpoint that comes with a job or a call. The same wish of the same account has the same id. */
export interface NewHook {
  readonly id: string
  readonly url: string
  readonly events: readonly string[]
  readonly secret: Uint8Array | null
  readonly description: string
}

export const DELIVERY_STATES = ['pending', 'delivered', 'failed'] as const
export type DeliveryState = (typeof DELIVERY_STATES)[number]

/** A message to one endpoint. */
export interface Message {
  /** The same in every try. */
  readonly id: string
  readonly type: MessageType
  /** The job, or the call, that it is about. */
  readonly subject: string
  readonly at: Date
  /** JSON: what was true then. */
  readonly facts: string
}

export interface Delivery extends Message {
  readonly endpointId: string
  readonly state: DeliveryState
  readonly attempts: number
  /** null: there will be none. */
  readonly nextAt: Date | null
  readonly endedAt: Date | null
}

export type AttemptOutcome =
  | 'delivered'
  | 'refused'
  | 'gone'
  | 'redirected'
  | 'unreachable'
  | 'timeout'
  | 'broken'
  | 'blocked'
  | 'unsigned'

/** What came of one try. */
export interface Attempt {
  readonly number: number
  readonly at: Date
  readonly tookMs: number
  readonly outcome: AttemptOutcome
  /** null: no answer began. */
  readonly status: number | null
  /** The beginning of the answer, or what went wrong. */
  readonly response: string | null
}
