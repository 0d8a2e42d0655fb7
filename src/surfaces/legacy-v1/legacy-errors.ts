/**
 * Refusals as this surface answers them. Clients of ComfyUI read `error`, clients of the hosted v1 read `code` and `message`,
 * so every body has all three. The table is total. Every answer has a JSON body, since one client parses each of them.
 */

import type { Log } from '../../../lib/log.ts'
import type { Refusal, ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, toRetryAfter } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

const ANSWER: Readonly<Record<Refusal, readonly [status: number, code: string]>> = {
  invalid_request: [400, 'invalid_request'],
  invalid_field: [400, 'invalid_request'],
  invalid_metadata_filter: [400, 'invalid_request'],
  invalid_cursor: [400, 'invalid_request'],
  metadata_invalid: [400, 'invalid_request'],
  unauthorized: [401, 'unauthorized'],
  forbidden: [403, 'forbidden'],
  forbidden_origin: [403, 'forbidden'],
  forbidden_host: [403, 'forbidden'],
  not_found: [404, 'not_found'],
  wrong_method: [405, 'method_not_allowed'],
  blob_not_found: [404, 'not_found'],
  output_unavailable: [404, 'not_found'],
  hash_mismatch: [400, 'invalid_request'],
  asset_in_use: [409, 'conflict'],
  offset_mismatch: [409, 'conflict'],
  upload_locked: [409, 'conflict'],
  checksum_mismatch: [400, 'invalid_request'],
  unsupported_version: [400, 'invalid_request'],
  unsupported_media_type: [400, 'invalid_request'],
  weights_conflict: [409, 'conflict'],
  payload_too_large: [413, 'payload_too_large'],
  range_not_satisfiable: [416, 'invalid_range'],
  invalid_workflow: [400, 'invalid_prompt'],
  workflow_format_ui: [400, 'invalid_prompt'],
  missing_asset: [400, 'invalid_prompt'],
  idempotency_key_reuse: [400, 'invalid_request'],
  queue_full: [429, 'QUEUE_LIMIT'],
  rate_limited: [429, 'rate_limited'],
  too_many_streams: [429, 'too_many_streams'],
  insufficient_credits: [402, 'INSUFFICIENT_CREDITS'],
  subscription_inactive: [429, 'PAYMENT_REQUIRED'],
  deployment_not_ready: [429, 'deployment_not_ready'],
  deployment_stopped: [400, 'deployment_stopped'],
  link_invalid: [403, 'forbidden'],
  storage_full: [500, 'internal_error'],
  store_unavailable: [503, 'store_unavailable'],
  overloaded: [503, 'overloaded'],
  shutting_down: [429, 'QUEUE_LIMIT'],
}

const JSON_TYPE = 'application/json; charset=utf-8'

export function createAnswerError(log: Log): AnswerError {
  const defect = toAnswer(500, 'internal_error', DEFECT_MESSAGE)
  return createErrorBoundary(log, { answerRefusal, defect })
}

function answerRefusal(error: ServiceError): ErrorAnswer {
  const [status, code] = ANSWER[error.refusal]
  const answer = toAnswer(status, code, error.message)
  return { ...answer, headers: { ...answer.headers, ...refusalHeaders(error) } }
}

/** The headers that a refusal needs beside its body. */
function refusalHeaders(error: ServiceError): Record<string, string> {
  const [status] = ANSWER[error.refusal]
  if (status === 401) return { 'WWW-Authenticate': 'Bearer' }
  // Waiting does not make a subscription active.
  if ((status !== 429 && status !== 503) || error.refusal === 'subscription_inactive') return {}
  return { 'Retry-After': toRetryAfter(error.retryAfterSeconds) }
}

function toAnswer(status: number, code: string, message: string): ErrorAnswer {
  const body = JSON.stringify({ code, message, error: message })
  return { status, headers: { 'Content-Type': JSON_TYPE }, body }
}
