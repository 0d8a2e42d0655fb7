/**
 * Where endpoints and their messages are kept. What happens to jobs, calls and credits becomes messages in the transaction that makes
 * it true: the store does that by itself, for endpoints that are there by then. A message is tried by whoever holds its lease.
 */
import type {
  Attempt,
  Delivery,
  DeliveryState,
  DisableReason,
  Endpoint,
  EndpointState,
  Message,
  SealedSecrets,
} from './webhook.ts'

export interface EndpointChange extends Partial<SealedSecrets> {
  readonly url?: string
  readonly description?: string
  readonly events?: readonly string[]
  /** An endpoint that is enabled again counts as one that has never failed. */
  readonly state?: Exclude<EndpointState, 'disabled'>
  readonly creditsLowMicros?: number | null
}

/** A message that is to be tried now, and all that is needed for it. */
export interface ClaimedDelivery extends Message {
  readonly leaseId: string
  readonly attempts: number
  /** When the first of the tries was that count; null: this one is it. */
  readonly firstAt: Date | null
  readonly endpoint: Endpoint
}

export interface ClaimDeliveries {
  readonly leaseId: string
  readonly now: Date
  readonly until: Date
  readonly limit: number
  /** How many are under way to one endpoint at a time, in all processes; to one that fails it is one. */
  readonly perEndpoint: number
}

export type DeliveryFate =
  | { readonly fate: 'delivered' }
  | { readonly fate: 'retry'; readonly nextAt: Date }
  | { readonly fate: 'failed' }

export interface AttemptEnd {
  readonly deliveryId: string
  readonly leaseId: string
  readonly attempt: Omit<Attempt, 'number'>
  readonly result: DeliveryFate
  /** Nothing more is sent to the endpoint: what waits for it has failed. */
  readonly disable: DisableReason | null
}

export interface DeliveryQuery {
  readonly endpointId?: string
  readonly subject?: string
  readonly state?: DeliveryState
  /** Older than this one. */
  readonly before?: string
  readonly limit: number
}

export interface ReplayRange {
  readonly from: Date
  readonly to: Date
  readonly onlyFailed: boolean
}

export interface NewMessage extends Message {
  readonly endpointId: string
  readonly accountId: string
}

export interface WebhookStore {
  /** False: the account has as many as it may. */
  create(endpoint: Endpoint, options: { readonly max: number }): Promise<boolean>
  /** Those that the account made, oldest first. */
  list(accountId: string): Promise<readonly Endpoint[]>
  /** null, also for one that the account did not make. */
  find(accountId: string, id: string): Promise<Endpoint | null>
  change(accountId: string, id: string, change: EndpointChange, now: Date): Promise<Endpoint | null>
  /** With everything that was or is to be sent to it. */
  remove(accountId: string, id: string): Promise<boolean>
  /** Puts an endpoint of the configuration in, or in its place. */
  putOperatorEndpoint(endpoint: Endpoint): Promise<void>
  /** A message that no change of the store makes. Put in twice, it is there once. */
  enqueue(message: NewMessage): Promise<void>

  /** Messages whose time has come, each the oldest of its endpoint and subject, in no particular order otherwise. */
  claim(request: ClaimDeliveries): Promise<readonly ClaimedDelivery[]>
  /** Returns the endpoints that were disabled by it. An end under a lease that has lapsed counts only where it says `delivered`. */
  finish(ends: readonly AttemptEnd[]): Promise<readonly string[]>
  /** Whether any message waits, now or later. */
  hasPending(): Promise<boolean>

  /** Newest first. */
  deliveries(accountId: string, query: DeliveryQuery): Promise<readonly Delivery[]>
  delivery(
    accountId: string,
    id: string,
  ): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | null>
  /** Tries it again from the start, whatever came of it. */
  replay(accountId: string, id: string, now: Date): Promise<Delivery | null>
  /** The same for all that have ended; returns how many. */
  replayRange(accountId: string, endpointId: string, range: ReplayRange, now: Date): Promise<number>

  /** How many wait, counted to the limit. */
  backlog(limit: number): Promise<number>
  /** Forgets messages that ended before, and endpoints of jobs that nobody has named since; returns how many. */
  sweep(before: Date, limit: number): Promise<number>
}
