/**
 * Every way in which a model call is refused or fails, as one closed set. The surface maps each to a status and to the
 * published error type; several refusals share a type. Ends that a provider caused can be stored and told again.
 */
import type { Json, JsonRecord } from './catalog/model.ts'

/** One thing that is wrong with an input: where, in words, and as a word that programs compare. */

export interface ValidationFailure {
  /** Outermost first; `body` stands before the fields of the body. */
  readonly loc: readonly (string | number)[]
  readonly msg: string
  /** An open set: ours are in input-schema.ts, a provider's are passed on unchanged. */
  readonly type: string
  /** The bound that was broken. */
  readonly ctx?: JsonRecord
  /** The rejected value. */
  readonly input?: Json
}

/** The published types: the first fifteen on every route, the last four on the queue routes only. */
export const ROUTER_ERROR_TYPES = [
  'invalid_input',
  'content_policy_violation',
  'provider_error',
  'provider_timeout',
  'insufficient_credits',
  'model_not_found',
  'unauthorized',
  'forbidden',
  'concurrency_limit_exceeded',
  'client_disconnected',
  'internal_error',
  'deadline_exceeded',
  'not_enabled',
  'service_unavailable',
  'rate_limited',
  'cancelled',
  'queue_timeout',
  'request_not_found',
  'queue_backlog_full',
  'already_completed',
] as const
export type RouterErrorType = (typeof ROUTER_ERROR_TYPES)[number]

export const ROUTER_REFUSALS = {
  malformed: 'invalid_input', // not JSON, no object, a bad cursor, a bad header
  wrong_method: 'invalid_input', // the address has others
  too_large: 'invalid_input',
  invalid_fields: 'invalid_input', // `failures` lists all of them
  provider_refused_input: 'invalid_input', // the provider says so and gives no list
  key_unusable: 'invalid_input', // used for another request, or its answer cannot be told again
  key_running: 'concurrency_limit_exceeded', // the same call is under way
  policy: 'content_policy_violation',
  provider_failed: 'provider_error',
  provider_timeout: 'provider_timeout',
  no_credits: 'insufficient_credits',
  unknown_model: 'model_not_found',
  unauthorized: 'unauthorized',
  forbidden: 'forbidden',
  calls_exhausted: 'concurrency_limit_exceeded',
  spend_exhausted: 'concurrency_limit_exceeded',
  rate: 'rate_limited',
  disconnected: 'client_disconnected', // for the log only: nobody is left to read it
  internal: 'internal_error',
  deadline: 'deadline_exceeded',
  not_enabled: 'not_enabled',
  unavailable: 'service_unavailable',
  cancelled: 'cancelled',
  already_completed: 'already_completed', // a cancel that came too late
  waited_too_long: 'queue_timeout',
  unknown_request: 'request_not_found',
  forgotten_request: 'request_not_found', // it was there, and its result has aged out
  backlog_full: 'queue_backlog_full',
} as const satisfies Record<string, RouterErrorType>
export type RouterRefusal = keyof typeof ROUTER_REFUSALS

/** What an account has under way, as it stood when a call was let in or refused. */
export interface Spend {
  readonly limitMicros: number | null
  readonly committedMicros: number
  readonly maxCalls: number | null
  readonly runningCalls: number
}

export interface RouterErrorOptions {
  readonly failures?: readonly ValidationFailure[]
  readonly upstreamStatus?: number | null
  readonly retryAfterSeconds?: number | null
  readonly spend?: Spend | null
  /** Told again from the record of its key. */
  readonly isReplay?: boolean
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

  constructor(refusal: RouterRefusal, message: string, options: RouterErrorOptions = {}) {
    super(message, { cause: options.cause })
    this.name = 'RouterError'
    this.refusal = refusal
    this.failures = options.failures ?? null
    this.upstreamStatus = options.upstreamStatus ?? null
    this.retryAfterSeconds = options.retryAfterSeconds ?? null
    this.spend = options.spend ?? null
    this.isReplay = options.isReplay ?? false
  }
}
