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
  /** When the message was first tried since it was sent or replayed; null: this is the first try. */
  readonly firstAt: Date | null
  readonly endpoint: Endpoint
}

interface ClaimDeliveries {
  readonly leaseId: string
  readonly now: Date
  readonly until: Date
  readonly limit: number
  /** How many are under way to one endpoint at a time, in all processes; to one that fails it is one. */
  readonly perEndpoint: number
  /** Whether messages in other forms than the service's own are taken, too. */
  readonly knowsForms: boolean
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

interface NewMessage extends Message {
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
  /** Adds an endpoint of the configuration, or replaces it. */
  putOperatorEndpoint(endpoint: Endpoint): Promise<void>
  /** Adds a message that no change in the store causes, such as a test. One with an id that is there already is left out. */
  enqueue(message: NewMessage): Promise<void>

  /** Messages whose time has come, each the oldest of its endpoint and subject, in no particular order otherwise. */
  claim(request: ClaimDeliveries): Promise<readonly ClaimedDelivery[]>
  /** Returns the endpoints that this disabled. Under a lapsed lease, only the end of a try that was `delivered` counts. */
  finish(ends: readonly AttemptEnd[]): Promise<readonly string[]>
  /** Whether any message waits to be sent, due or not. */
  hasPending(): Promise<boolean>

  /** Newest first. */
  deliveries(accountId: string, query: DeliveryQuery): Promise<readonly Delivery[]>
  delivery(
    accountId: string,
    id: string,
  ): Promise<{ readonly delivery: Delivery; readonly attempts: readonly Attempt[] } | null>
  /** Sends the message again, with all of its tries, whether it had arrived or not. */
  replay(accountId: string, id: string, now: Date): Promise<Delivery | null>
  /** Replays all messages of the range that have ended; returns how many. */
  replayRange(accountId: string, endpointId: string, range: ReplayRange, now: Date): Promise<number>

  /** How many messages wait; counting stops at the limit. */
  backlog(limit: number): Promise<number>
  /** Removes messages that ended before that time, and endpoints of jobs that no job has named since; returns how many. */
  sweep(before: Date, limit: number): Promise<number>
}
