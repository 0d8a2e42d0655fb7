/** Refusals in the envelope of the worker protocol. The table is total; anything that is not a refusal is a defect and logged once. */
import type { Log } from '../../../lib/log.ts'
import { type Refusal, type RefusalDetails, ServiceError } from '../../domain/errors.ts'
import { DEFECT_MESSAGE, toRetryAfter } from '../kit/answer-errors.ts'
import { toMalformedRequest } from '../kit/guards/http-refusals.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

const STATUS: Readonly<Record<Refusal, number>> = {
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
  payload_too_large: 413,
  range_not_satisfiable: 416,
  invalid_workflow: 422,
  workflow_format_ui: 422,
  missing_asset: 422,
  idempotency_key_reuse: 422,
  queue_full: 429,
  rate_limited: 429,
  too_many_streams: 429,
  storage_full: 507,
  store_unavailable: 503,
  insufficient_credits: 402,
  subscription_inactive: 403,
  deployment_not_ready: 429,
  deployment_stopped: 422,
  link_invalid: 403,
  overloaded: 503,
  shutting_down: 503,
}

/** The worker speaks a version that this node does not, or asks for a WebSocket's address without one. */
export class UpgradeRequired extends Error {
  readonly type: 'version_unsupported' | 'upgrade_required'
  readonly details: RefusalDetails | null

  constructor(type: UpgradeRequired['type'], message: string, details: RefusalDetails | null = null) {
    super(message)
    this.type = type
    this.details = details
  }
}

export function createAnswerWorkerError(log: Log): AnswerError {
  return (error, requestId) => {
    if (error instanceof UpgradeRequired) {
      const answer = toAnswer(426, { ...error, message: error.message, requestId })
      return { ...answer, headers: { ...answer.headers, Upgrade: 'websocket' } }
    }
    const refusal = error instanceof ServiceError ? error : toMalformedRequest(error)
    if (refusal !== null) return answerRefusal(refusal, requestId)
    log.error({ err: error, requestId }, 'a request of a worker failed unexpectedly')
    return toAnswer(500, { type: 'internal_error', message: DEFECT_MESSAGE, details: null, requestId })
  }
}

function answerRefusal({ refusal, message, details, retryAfterSeconds }: ServiceError, requestId: string): ErrorAnswer {
  const answer = toAnswer(STATUS[refusal], { type: refusal, message, details, requestId })
  const headers = { ...answer.headers }
  if (answer.status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (answer.status === 429 || answer.status === 503) headers['Retry-After'] = toRetryAfter(retryAfterSeconds)
  return { ...answer, headers }
}

interface Told {
  readonly type: string
  readonly message: string
  readonly details: RefusalDetails | null
  readonly requestId: string
}

function toAnswer(status: number, { type, message, details, requestId }: Told): ErrorAnswer {
  const body = JSON.stringify({ error: { type, message, details, request_id: requestId } })
  return { status, headers: { 'Content-Type': 'application/json' }, body }
}
