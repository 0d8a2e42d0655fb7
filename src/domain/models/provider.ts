/**
 * What the router needs of a provider. An adapter speaks the provider's protocol and reduces every answer to one of the
 * outcomes below; it never throws for anything that a provider or a network can do. A throw is a defect, and the router then
 * has to assume that a generation may exist.
 *
 * The order is fixed: `submit` once; when it gives a handle, the router stores that handle durably and only then calls
 * `poll`, as often as it takes, possibly in another process days later. Nothing but the handle and the model may be needed
 * to poll. A handle is stored in clear: no key, no signed header, no input of the caller belongs into it.
 */
import type { Sending } from './calls/live-calls.ts'
import type { ToldTask } from './calls/told-task.ts'
import type { Json, JsonRecord, Model } from './catalog/model.ts'
import type { RouterRefusal, ValidationFailure } from './router-error.ts'

/** Whose credentials a call would use. `none`: there are none, so its models are not enabled for this account. */
export type ProviderAccess = 'service_key' | 'own_key' | 'none'

export interface ProviderCall {
  readonly model: Model
  readonly accountId: string
  /** Names this logical call, however often it is submitted: for providers that take an idempotency key or a task id of ours. */
  readonly submitKey: string
  /** A submit of this call was sent before, and its outcome is unknown. */
  readonly isRepeat?: boolean
  /** The caller's own bytes, to be forwarded unchanged unless the model's rules say otherwise. */
  readonly body: Buffer
  /** Of the body; left out: JSON. */
  readonly contentType?: string
  /** The API key that the call came with; left out or null: not known. */
  readonly keyId?: string | null
  /** Goes with the account's own key at the provider, or not at all; false: never with that. Left out: as `access` says. */
  readonly isOwnKey?: boolean
  /** The same, parsed and valid against the model's schema: for decisions, not for forwarding (numbers may have lost digits). */
  readonly input: JsonRecord
}

export interface ProviderTask {
  readonly model: Model
  readonly accountId: string
  readonly handle: Json
  /** It was made with the account's own key, so only that reaches it; false: with another one. Left out: as `access` says. */
  readonly isOwnKey?: boolean
}

export interface ProviderOptions {
  /** Aborted when the work must end at once: at the hard end of the call, or when the process stops. */
  readonly signal: AbortSignal
  /** Retries, and waiting for capacity at the provider, end before this. */
  readonly deadline: Date
}

export interface SubmitOptions extends ProviderOptions {
  /** Absent where a second submit makes no second generation, so that it does not matter whether one was sent. */
  readonly sending?: Sending
  /** Another provider is asked rather than this one tried again, or waited for when it is too busy. */
  readonly isImpatient?: boolean
}

/** A finished generation: what the caller gets. */
export interface ProviderResult {
  /** Whole, or streamed when it may be large. A stream is read exactly once, or returned (`iterator.return()`) unread. */
  readonly body: Buffer | AsyncIterable<Uint8Array>
  /** The provider's own. */
  readonly contentType: string
  /** What the provider says it used (header or body), for prices that depend on it; null when it says nothing. */
  readonly usage: JsonRecord | null
  /** What the provider says it cost, in millionths of a US dollar; null when it does not. */
  readonly costMicros: number | null
  /** The path of the parts with inline media that the caller wants as addresses; absent: they stay inline. */
  readonly inlineParts?: string | null
  /** The body is a stream of events, which this reads; left out: it is none. */
  readonly events?: EventReading
  /** The provider broke off in the middle. */
  readonly isPartial?: boolean
  /** Whoever waited has had it, and it cannot be given again. */
  readonly isTooLongToKeep?: boolean
}

/** Nothing of the answer is read behind it. */
export class UnreadableEvent extends Error {
  override readonly name = 'UnreadableEvent'
  /** The events before it that were not passed on yet. They count. */
  readonly before: Uint8Array

  constructor(message: string, before: Uint8Array) {
    super(message)
    this.before = before
  }
}

/** Reads an answer that comes as events, while it comes. */
export interface EventReading {
  /** The events that are whole by now, byte for byte. Throws UnreadableEvent for what is no event of such an answer. */
  read(chunk: Uint8Array): Uint8Array
  /** `isEnded`: the provider ended it; false: it was cut off. */
  end(isEnded: boolean): {
    /** What is passed on behind the events so far. */
    readonly rest: Uint8Array
    /** The answer itself says that it is over. */
    readonly isWhole: boolean
    /** Something was made. */
    readonly hasOutput: boolean
    /** As it says; what it does not say is estimated from what came. */
    readonly usage: JsonRecord | null
    readonly costMicros: number | null
  }
}

/**
 * What there is at the provider after a refusal. It decides whether the same key may be used for another try.
 * `none`: surely nothing was accepted (refused connection, 4xx, 429, 5xx before acceptance). `ended`: it was accepted and has
 * ended; this refusal is its final answer. `possible`: it may exist or still run, and nobody can tell.
 */
export type Generation = 'none' | 'ended' | 'possible'

interface Refused {
  /** Safe to show to the end user; bounded. */
  readonly message: string
  /** The provider's own HTTP status; null when it gave none or the failure is not the provider's. */
  readonly upstreamStatus: number | null
  readonly generation: Generation
}

export type ProviderRefusal =
  /** Refused for its content; final, never retried. */
  | ({ readonly reason: 'policy'; readonly costMicros: number | null } & Refused)
  /** The provider does not accept the input. `failures` is its own list, unchanged; null when it only gave a text. */
  | ({ readonly reason: 'invalid'; readonly failures: readonly ValidationFailure[] | null } & Refused)
  /** It failed, gave no output, answered what cannot be read, or has a problem with OUR account. */
  | ({ readonly reason: 'failed' } & Refused)
  /** It did not answer within its own bound. */
  | ({ readonly reason: 'timeout' } & Refused)
  /** Nothing was sent: calls stay away from it, or there was no capacity before the deadline. `generation` is `none`. */
  | ({ readonly reason: 'unavailable'; readonly retryAfterSeconds: number | null } & Refused)
  /** The provider is this service itself, and its own rules refuse the call. `generation` is `none`. */
  | ({ readonly reason: 'refused'; readonly refusal: RouterRefusal } & Refused)

export type SubmitOutcome =
  | { readonly outcome: 'finished'; readonly result: ProviderResult }
  | { readonly outcome: 'accepted'; readonly handle: Json; readonly pollAfterMs: number; readonly told?: ToldTask }
  | { readonly outcome: 'refused'; readonly refusal: ProviderRefusal }

export type PollOutcome =
  | { readonly outcome: 'finished'; readonly result: ProviderResult }
  | { readonly outcome: 'pending'; readonly pollAfterMs: number }
  | { readonly outcome: 'refused'; readonly refusal: ProviderRefusal }
  /** The poll itself failed; says nothing about the generation. The router tolerates a few in a row. */
  | { readonly outcome: 'unreachable'; readonly message: string; readonly pollAfterMs: number }

/** A question about a task, which is passed on as it is and costs nothing. */
interface ProviderQuestion {
  /** Of the task. */
  readonly model: Model
  readonly accountId: string
  readonly method: 'GET' | 'POST' | 'DELETE'
  /** A path below the provider's base, with names in braces; only their values come from a caller. */
  readonly path: string
  readonly values: Readonly<Record<string, string>>
  readonly body: Buffer | null
  /** As of the task. */
  readonly isOwnKey?: boolean
}

/** What a provider says to a key. `untestable`: nothing can be asked of it that costs nothing. `unreadable`: the key could not be opened. */
export interface KeyVerdict {
  readonly outcome: 'works' | 'refused' | 'unclear' | 'untestable' | 'unreadable'
  /** null: it was not asked, or did not answer. */
  readonly upstreamStatus: number | null
}

export interface ProviderReply {
  /** The reply says that the task has ended. */
  readonly isOver: boolean
  readonly status: number
  readonly contentType: string
  /** As `ProviderResult.body`. */
  readonly body: Buffer | AsyncIterable<Uint8Array>
}

export interface Provider {
  /** The first segment of its models' ids. */
  readonly name: string
  /** By the settings of the operator. */
  access(accountId: string): ProviderAccess
  /** Accounts may bring keys of their own; left out: it takes none. */
  readonly ownKeys?: {
    /** What about a text cannot be a key of this provider; null: nothing. */
    problemOf(key: string): string | null
    /** null: nothing can be asked of it that costs nothing. */
    readonly test: ((key: string, options: ProviderOptions) => Promise<KeyVerdict>) | null
  }
  /** Why nobody has access to it in this process, in words for callers; left out: it is not set up. */
  readonly absence?: string
  /** What is wrong with the model's `adapter` part; empty when nothing is. */
  checkModel(model: Model): readonly string[]
  /**
   * Whether submitting this input again with the same `submitKey`, as a repeat, can never make a second generation; with
   * null, whether that holds for every input.
   */
  deduplicates(model: Model, input: JsonRecord | null): boolean
  /** Whether it calls `sending` when bytes leave. A submit of one that does not counts as sent from the beginning. */
  readonly announcesSends?: boolean
  /** Calls stay away for a while when it keeps failing; left out: its failures say nothing about the next call. */
  readonly isPausedAfterFailures?: boolean
  submit(call: ProviderCall, options: SubmitOptions): Promise<SubmitOutcome>
  poll(task: ProviderTask, options: ProviderOptions): Promise<PollOutcome>
  /** Passes a question on; null: the provider could not be reached. Absent where nobody may ask it anything. */
  readonly ask?: (question: ProviderQuestion, options: ProviderOptions) => Promise<ProviderReply | null>
  /** Best effort; absent where the provider cannot. */
  readonly cancel?: (task: ProviderTask, options: ProviderOptions) => Promise<void>
}
