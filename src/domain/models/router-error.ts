/**
 * Every way in which a model call is refused or fails, as one closed set. The surface maps each to a status and to a published
 * error type. Ends that a provider caused can be stored and replayed.
 */
import type { Json, JsonRecord } from './catalog/model.ts'

export type RouterRefusal =
  | 'malformed' // not JSON, no object, a bad cursor, a bad header
  | 'wrong_method' // the address takes other methods
  | 'too_large'
  | 'invalid_fields' // `failures` lists all of them
  | 'provider_refused_input' // the provider says so and gives no list
  | 'key_unusable' // used for another request, or its answer cannot be replayed
  | 'key_running' // the same call is under way
  | 'policy' // the provider refuses the content
  | 'provider_failed'
  | 'provider_timeout'
  | 'no_credits'
  | 'unknown_model'
  | 'unauthorized'
  | 'forbidden'
  | 'calls_exhausted' // as many calls are under way as the account may have
  | 'spend_exhausted' // the calls under way may cost as much as the account may commit
  | 'rate'
  | 'disconnected' // for log lines only: nobody is left to read it
  | 'internal'
  | 'deadline'
  | 'not_enabled'
  | 'unavailable'
  | 'cancelled'
  | 'already_completed' // a cancel that came too late
  | 'waited_too_long'
  | 'unknown_request'
  | 'forgotten_request' // it was there, and its result has aged out
  | 'backlog_full'

/**
 * One thing that is wrong with an input: where, in words for people, and as a word that programs compare. The member names are
 * those that providers answer with and callers expect, so that a provider's own list is passed on unchanged.
 */
export interface ValidationFailure {
  /** Outermost first; `body` stands before the fields of the body. */
  readonly loc: readonly (string | number)[]
  readonly msg: string
  /** An open set: a provider's words are passed on, ours come from model-catalog.ts and from the adapter that compiles schemas. */
  readonly type: string
  /** The bound that was broken. */
  readonly ctx?: JsonRecord
  /** The rejected value. */
  readonly input?: Json
}

/** What an account has under way, as it stood when a call was admitted or refused. */
export interface Spend {
  readonly limitMicros: number | null
  readonly committedMicros: number
  readonly maxCalls: number | null
  readonly runningCalls: number
}

interface RouterErrorOptions {
  readonly failures?: readonly ValidationFailure[]
  readonly upstreamStatus?: number | null
  readonly retryAfterSeconds?: number | null
  readonly spend?: Spend | null
  /** Replayed from the record of its key. */
  readonly isReplay?: boolean
  /** The call goes on, and its caller cannot ask for it again: whoever sends it again makes a second one. */
  readonly goesOn?: boolean
  readonly cause?: unknown
}

/** `message` is safe to show to end users. */
export class RouterError extends Error {
  readonly refusal: RouterRefusal
  readonly failures: readonly ValidationFailure[] | null
  readonly upstreamStatus: number | null
  readonly retryAfterSeconds: number | null
  readonly spend: Spend | null
  readonly isReplay: boolean
  readonly goesOn: boolean

  constructor(refusal: RouterRefusal, message: string, options: RouterErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'RouterError'
    this.refusal = refusal
    this.failures = options.failures ?? null
    this.upstreamStatus = options.upstreamStatus ?? null
    this.retryAfterSeconds = options.retryAfterSeconds ?? null
    this.spend = options.spend ?? null
    this.isReplay = options.isReplay ?? false
    this.goesOn = options.goesOn ?? false
  }
}
