/** What the error answers of all surfaces share: what is logged, what a caller learns of a defect, the usual statuses and headers. */
import type { Log } from '../../../lib/log.ts'
import { type Refusal, ServiceError } from '../../domain/errors.ts'
import type { RouterRefusal } from '../../domain/models/router-error.ts'
import type { AnswerError, ErrorAnswer } from './surface.ts'

/** All that a caller learns of a defect. */
export const DEFECT_MESSAGE = 'something went wrong on our side; the request id helps to find out what'
// Old clients spin on 0, and some drop fractions and dates.
const MIN_RETRY_SECONDS = 1

interface ErrorAnswers {
  answerRefusal(refusal: ServiceError): ErrorAnswer
  /** The answer to everything that is not a refusal. */
  readonly defect: ErrorAnswer
}

/** Refusals, our own and those of the HTTP layer, are answered; a defect is logged once, with the request id. */
export function createErrorBoundary(log: Log, { answerRefusal, defect }: ErrorAnswers): AnswerError {
  return (error, requestId) => {
    const refusal = error instanceof ServiceError ? error : toHttpRefusal(error)
    const isFull = refusal?.refusal === 'storage_full'
    if (refusal !== null && !isFull) return answerRefusal(refusal)
    // That the disk is full is for the operator to know, not for the caller.
    log.error({ err: error, requestId }, isFull ? 'nothing could be stored' : 'a request failed unexpectedly')
    return defect
  }
}

/** The value of a `Retry-After` header; null: the refusal names no time. */
export function toRetryAfter(seconds: number | null): string {
  if (seconds === null || !Number.isFinite(seconds)) return String(MIN_RETRY_SECONDS)
  return String(Math.max(MIN_RETRY_SECONDS, Math.ceil(seconds)))
}

/** JSON; a 401 says how to sign in, and what may be tried again says when. */
export function toJsonAnswer(status: number, body: object, retryAfterSeconds: number | null = null): ErrorAnswer {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' }
  if (status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (status === 423 || status === 429 || status === 503) headers['Retry-After'] = toRetryAfter(retryAfterSeconds)
  return { status, headers, body: JSON.stringify(body) }
}

/** What Node's HTTP parser and the framework refuse by themselves, as refusals of ours. */
interface HttpLayerError {
  readonly code?: unknown
  readonly statusCode?: number
}

/** null for a defect. */
export function toHttpRefusal(error: unknown): ServiceError | null {
  const { code } = toHttpLayerError(error)
  if (typeof code !== 'string') return null
  // A path segment longer than any id of ours, or one that cannot even be decoded: no address of ours looks like that.
  if (code === 'FST_ERR_MAX_PARAM_LENGTH' || code === 'FST_ERR_BAD_URL')
    return new ServiceError('not_found', 'there is nothing under this address')
  if (code === 'HPE_HEADER_OVERFLOW') return new ServiceError('invalid_request', 'the request headers are too large')
  if (code.startsWith('HPE_')) return new ServiceError('invalid_request', 'this is not a valid HTTP request')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT')
    return new ServiceError('invalid_request', 'the request took too long to arrive')
  return toMalformedRequest(error)
}

/** Everything that the framework refuses, an address that it cannot route included, as one refusal. null for a defect. */
export function toMalformedRequest(error: unknown): ServiceError | null {
  const { code, statusCode } = toHttpLayerError(error)
  const isOfFramework = typeof code === 'string' && code.startsWith('FST_') && (statusCode ?? 500) < 500
  return isOfFramework ? new ServiceError('invalid_request', 'the request is malformed') : null
}

function toHttpLayerError(error: unknown): HttpLayerError {
  return typeof error === 'object' && error !== null ? error : {}
}

// The status of each refusal, for surfaces whose contract asks for no other. Both tables are total.

export const REFUSAL_STATUS: Readonly<Record<Refusal, number>> = {
  invalid_request: 400,
  invalid_field: 422,
  invalid_metadata_filter: 400,
  invalid_cursor: 400,
  metadata_invalid: 422,
  unauthorized: 401,
  forbidden: 403,
  forbidden_origin: 403,
  forbidden_host: 403,
  not_found: 404,
  wrong_method: 405,
  blob_not_found: 404,
  output_unavailable: 404,
  hash_mismatch: 409,
  asset_in_use: 409,
  weights_conflict: 409,
  offset_mismatch: 409,
  upload_locked: 423,
  checksum_mismatch: 460,
  unsupported_version: 412,
  unsupported_media_type: 415,
  payload_too_large: 413,
  range_not_satisfiable: 416,
  invalid_workflow: 422,
  workflow_format_ui: 422,
  missing_asset: 422,
  batch_refused: 422,
  invalid_input: 422,
  breaking_change: 409,
  revision_mismatch: 412,
  not_waiting: 409,
  endpoint_stopped: 422,
  idempotency_key_reuse: 422,
  queue_full: 429,
  run_limit: 429,
  rate_limited: 429,
  too_many_streams: 429,
  storage_full: 507,
  store_unavailable: 503,
  insufficient_credits: 402,
  spend_limit: 402,
  subscription_inactive: 403,
  deployment_not_ready: 429,
  deployment_stopped: 422,
  refused_by_policy: 403,
  check_unavailable: 503,
  link_invalid: 403,
  overloaded: 503,
  shutting_down: 503,
}

/** What partner models add to them. */
export const ROUTER_REFUSAL_STATUS: Readonly<Record<RouterRefusal, number>> = {
  malformed: 400,
  wrong_method: 405,
  too_large: 413,
  invalid_fields: 422,
  provider_refused_input: 400,
  key_unusable: 409,
  key_running: 409,
  policy: 400,
  provider_failed: 502,
  provider_timeout: 504,
  no_credits: 402,
  unknown_model: 404,
  unauthorized: 401,
  forbidden: 403,
  calls_exhausted: 429,
  spend_exhausted: 429,
  rate: 429,
  disconnected: 499,
  internal: 500,
  deadline: 504,
  not_enabled: 403,
  unavailable: 503,
  cancelled: 409,
  already_completed: 409,
  waited_too_long: 504,
  unknown_request: 404,
  forgotten_request: 410,
  backlog_full: 429,
}
