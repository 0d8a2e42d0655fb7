/**
 * The only file where refusals become HTTP on this surface. Both tables are total. Every error carries its type in the header
 * and in the body; whatever is not a refusal is a defect: the caller learns nothing about it, and it is logged once.
 */
import type { Log } from '../../../lib/log.ts'
import { RateLimitedError } from '../../domain/credits/rate-limit.ts'
import { type Refusal, ServiceError } from '../../domain/errors.ts'
import type { SpendOf } from '../../domain/models/access/model-access.ts'
import { RouterError, type RouterRefusal } from '../../domain/models/router-error.ts'
import { DEFECT_MESSAGE, ROUTER_REFUSAL_STATUS, toHttpRefusal, toRetryAfter } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'
import { type BrandHeaders, toSpendHeaders } from './router-operation.ts'

/** Refusals of the parts that all surfaces share. */
const SHARED: Readonly<Record<Refusal, RouterRefusal>> = {
  invalid_request: 'malformed',
  invalid_field: 'malformed',
  invalid_metadata_filter: 'malformed',
  invalid_cursor: 'malformed',
  metadata_invalid: 'malformed',
  unauthorized: 'unauthorized',
  forbidden: 'forbidden',
  forbidden_origin: 'forbidden',
  forbidden_host: 'forbidden',
  not_found: 'unknown_model',
  wrong_method: 'wrong_method',
  blob_not_found: 'unavailable',
  output_unavailable: 'unavailable',
  hash_mismatch: 'internal',
  asset_in_use: 'internal',
  weights_conflict: 'internal',
  offset_mismatch: 'internal',
  upload_locked: 'internal',
  checksum_mismatch: 'internal',
  unsupported_version: 'malformed',
  unsupported_media_type: 'malformed',
  payload_too_large: 'too_large',
  range_not_satisfiable: 'malformed',
  invalid_workflow: 'malformed',
  workflow_format_ui: 'malformed',
  missing_asset: 'malformed',
  batch_refused: 'malformed',
  invalid_input: 'malformed',
  breaking_change: 'malformed',
  revision_mismatch: 'malformed',
  not_waiting: 'malformed',
  endpoint_stopped: 'malformed',
  idempotency_key_reuse: 'key_unusable',
  queue_full: 'unavailable',
  run_limit: 'unavailable',
  rate_limited: 'rate',
  too_many_streams: 'rate',
  storage_full: 'unavailable',
  store_unavailable: 'unavailable',
  insufficient_credits: 'no_credits',
  spend_limit: 'no_credits',
  subscription_inactive: 'not_enabled',
  deployment_not_ready: 'unavailable',
  deployment_stopped: 'not_enabled',
  refused_by_policy: 'policy',
  check_unavailable: 'unavailable',
  link_invalid: 'forbidden',
  overloaded: 'unavailable',
  shutting_down: 'unavailable',
}

// The statuses on which a provider's own status means something to a caller.
const WITH_UPSTREAM: ReadonlySet<number> = new Set([400, 502, 504])
const DETAIL_MAX_LENGTH = 256
const UNAVAILABLE = 'this is not possible at the moment; try again later'

type AnswerRouterError = AnswerError

export function createAnswerRouterError(log: Log, brand: BrandHeaders): AnswerRouterError {
  return (error, requestId) => {
    if (error instanceof ServiceError && error.refusal === 'storage_full') {
      // That the disk is full is for the operator to know, not for the caller.
      log.error({ err: error, requestId }, 'nothing could be stored')
      return toAnswer(new RouterError(SHARED.storage_full, UNAVAILABLE), brand)
    }
    const known = toRouterError(error)
    if (known !== null) return toAnswer(known, brand)
    log.error({ err: error, requestId }, 'a request failed unexpectedly')
    return toAnswer(new RouterError('internal', DEFECT_MESSAGE), brand)
  }
}

/**
 * A spent rate with what its account has under way. The answers of a run tell both; every other error is left as it is.
 * `accountId`: who called, where it is known; a rate that is spent before anybody is let in says it itself.
 */
export async function withSpend(error: unknown, accountId: string | null, spendOf: SpendOf): Promise<unknown> {
  const known = toRouterError(error)
  const whose = error instanceof RateLimitedError ? error.accountId : accountId
  if (known?.refusal !== 'rate' || known.spend !== null || whose === null) return error
  const { message, retryAfterSeconds } = known
  return new RouterError('rate', message, { retryAfterSeconds, spend: await spendOf(whose), cause: error })
}

function toErrorType(error: RouterError): RouterErrorType {
  return errorTypeOf(error.refusal)
}

function toRouterError(error: unknown): RouterError | null {
  if (error instanceof RouterError) return error
  if (error instanceof ServiceError) {
    const { message, retryAfterSeconds } = error
    return new RouterError(SHARED[error.refusal], message, { retryAfterSeconds })
  }
  return ofHttpLayer(error)
}

/** No address of ours looks like one that the framework cannot route, so it names no model. */
function ofHttpLayer(error: unknown): RouterError | null {
  const refusal = toHttpRefusal(error)
  if (refusal === null) return null
  if (refusal.refusal === 'not_found') return new RouterError('unknown_model', 'there is no model under this address')
  return new RouterError(SHARED[refusal.refusal], refusal.message)
}

function toAnswer(error: RouterError, brand: BrandHeaders): ErrorAnswer {
  const status = ROUTER_REFUSAL_STATUS[error.refusal]
  const type = toErrorType(error)
  const headers: Record<string, string> = { 'Content-Type': 'application/json' }
  for (const name of brand.errorType) headers[name] = type
  const { upstreamStatus, retryAfterSeconds } = error
  if (upstreamStatus !== null && WITH_UPSTREAM.has(status)) {
    for (const name of brand.upstreamStatus) headers[name] = String(upstreamStatus)
  }
  const upstreamDetail = error.refusal === 'provider_refused_input' ? toHeaderText(error.message) : null
  if (upstreamDetail !== null) for (const name of brand.upstreamDetail) headers[name] = upstreamDetail
  if (retryAfterSeconds !== null) headers['Retry-After'] = toRetryAfter(retryAfterSeconds)
  if (error.isReplay) headers['Idempotent-Replayed'] = 'true'
  if (status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (status === 429) Object.assign(headers, toPairs(toSpendHeaders(error.spend)))
  return { status, headers, body: JSON.stringify(toBody(error, type, upstreamDetail)) }
}

function toBody(
  { failures, message, refusal }: RouterError,
  type: RouterErrorType,
  upstreamDetail: string | null,
): object {
  if (failures !== null) return { detail: failures, error_type: type }
  if (refusal === 'already_completed') return { detail: message, error_type: type, status: 'ALREADY_COMPLETED' }
  return upstreamDetail === null
    ? { detail: message, error_type: type }
    : { detail: message, error_type: type, upstream_detail: upstreamDetail }
}

function toHeaderText(text: string): string {
  return text
    .replaceAll(/[^\x20-\x7e]+/g, ' ')
    .trim()
    .slice(0, DETAIL_MAX_LENGTH)
}

function toPairs(flat: readonly string[]): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (let at = 0; at < flat.length; at += 2) pairs[flat[at]] = flat[at + 1]
  return pairs
}

// The published error types, and which of them stands for each refusal. Several refusals share a type.

/** The first fifteen on every route, the others on the queue routes only. */
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

const ERROR_TYPES: Readonly<Record<RouterRefusal, RouterErrorType>> = {
  malformed: 'invalid_input',
  wrong_method: 'invalid_input',
  too_large: 'invalid_input',
  invalid_fields: 'invalid_input',
  provider_refused_input: 'invalid_input',
  key_unusable: 'invalid_input',
  key_running: 'concurrency_limit_exceeded',
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
  disconnected: 'client_disconnected',
  internal: 'internal_error',
  deadline: 'deadline_exceeded',
  not_enabled: 'not_enabled',
  unavailable: 'service_unavailable',
  cancelled: 'cancelled',
  already_completed: 'already_completed',
  waited_too_long: 'queue_timeout',
  unknown_request: 'request_not_found',
  forgotten_request: 'request_not_found',
  backlog_full: 'queue_backlog_full',
}

export function errorTypeOf(refusal: RouterRefusal): RouterErrorType {
  return ERROR_TYPES[refusal]
}
