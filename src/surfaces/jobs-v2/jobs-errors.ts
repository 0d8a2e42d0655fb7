/**
 * The only file where refusals become HTTP on this surface. The table is total: a new refusal does not compile without its
 * row. Whatever is not a refusal is a defect: the caller learns nothing about it, and it is logged once, with the request id.
 */

import type { Log } from '../../../lib/log.ts'
import type { Refusal, RefusalDetails, ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, toJsonAnswer } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

const ANSWER: Readonly<Record<Refusal, readonly [status: number, code: string]>> = {
  invalid_request: [400, 'invalid_request'],
  invalid_field: [422, 'invalid_request'],
  invalid_metadata_filter: [400, 'invalid_metadata_filter'],
  invalid_cursor: [400, 'invalid_cursor'],
  metadata_invalid: [422, 'metadata_invalid'],
  unauthorized: [401, 'unauthorized'],
  forbidden: [403, 'forbidden'],
  forbidden_origin: [403, 'forbidden_origin'],
  forbidden_host: [403, 'forbidden'],
  not_found: [404, 'not_found'],
  wrong_method: [405, 'invalid_request'],
  blob_not_found: [404, 'blob_not_found'],
  output_unavailable: [404, 'output_unavailable'],
  hash_mismatch: [409, 'hash_mismatch'],
  asset_in_use: [409, 'asset_in_use'],
  // The set of codes is closed; details say what stands in the way.
  weights_conflict: [409, 'invalid_request'],
  offset_mismatch: [409, 'offset_mismatch'],
  upload_locked: [423, 'upload_locked'],
  // As the protocol of resumable uploads numbers it.
  checksum_mismatch: [460, 'checksum_mismatch'],
  unsupported_version: [412, 'unsupported_version'],
  unsupported_media_type: [415, 'unsupported_media_type'],
  payload_too_large: [413, 'payload_too_large'],
  range_not_satisfiable: [416, 'invalid_request'],
  invalid_workflow: [422, 'invalid_workflow'],
  workflow_format_ui: [422, 'workflow_format_ui'],
  missing_asset: [422, 'missing_asset'],
  batch_refused: [422, 'batch_refused'],
  invalid_input: [422, 'invalid_input'],
  breaking_change: [409, 'breaking_change'],
  revision_mismatch: [412, 'revision_mismatch'],
  not_waiting: [409, 'not_waiting'],
  endpoint_stopped: [422, 'endpoint_stopped'],
  idempotency_key_reuse: [422, 'idempotency_key_reuse'],
  queue_full: [429, 'queue_full'],
  run_limit: [429, 'run_limit'],
  rate_limited: [429, 'rate_limited'],
  too_many_streams: [429, 'too_many_streams'],
  insufficient_credits: [402, 'insufficient_credits'],
  spend_limit: [402, 'spend_limit'],
  subscription_inactive: [403, 'forbidden'],
  deployment_not_ready: [429, 'deployment_not_ready'],
  deployment_stopped: [422, 'deployment_stopped'],
  refused_by_policy: [403, 'refused_by_policy'],
  check_unavailable: [503, 'check_unavailable'],
  link_invalid: [403, 'forbidden'],
  storage_full: [500, 'upstream_error'],
  store_unavailable: [503, 'store_unavailable'],
  // Clients know no other code on which they send a request again by themselves.
  overloaded: [429, 'queue_full'],
  // Clients retry a full queue with the same key; by then another process may be listening.
  shutting_down: [429, 'queue_full'],
}

export function createAnswerError(log: Log): AnswerError {
  const defect = toJsonAnswer(500, { error: { code: 'upstream_error', message: DEFECT_MESSAGE, details: null } })
  return createErrorBoundary(log, { answerRefusal, defect })
}

function answerRefusal(refusal: ServiceError): ErrorAnswer {
  const { status, ...error } = toComplaint(refusal)
  return toJsonAnswer(status, { error }, refusal.retryAfterSeconds)
}

/** The code of a refusal that was kept, perhaps by another version. */
export function codeOf(kept: string): string {
  return Object.hasOwn(ANSWER, kept) ? ANSWER[kept as Refusal][1] : kept
}

/** The same refusal as part of an answer. */
export function toComplaint({ refusal, message, details }: Pick<ServiceError, 'refusal' | 'message' | 'details'>) {
  const [status, code] = ANSWER[refusal]
  return { status, code, message, details: toWireDetails(details) }
}

/** `missingIds` as `missing_ids`; values stay as they are. */
function toWireDetails(details: RefusalDetails | null): RefusalDetails | null {
  if (details === null) return null
  const toWireName = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return Object.fromEntries(Object.entries(details).map(([name, value]) => [toWireName(name), value]))
}
