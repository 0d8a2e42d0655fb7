/**
 * Refusals in the flat envelope of the official command line: `{"error": "CODE", "message": "text"}`. It knows 400, 401, 402, 403, 404, 409
 * and 429, and takes every other status for a fault of the server; in three places the text of a message decides what a person reads.
 */
import type { Log } from '../../../lib/log.ts'
import { DeployError, type DeployRefusal } from '../../domain/deployments/released/deploy-error.ts'
import type { Refusal, ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, REFUSAL_STATUS, toJsonAnswer } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

const REFUSED: Readonly<Record<DeployRefusal, readonly [status: number, code: string]>> = {
  invalid_request: [400, 'INVALID_REQUEST'],
  invalid_name: [400, 'INVALID_NAME'],
  compute_unavailable: [400, 'COMPUTE_UNAVAILABLE'],
  release_not_deployable: [400, 'RELEASE_NOT_DEPLOYABLE'],
  not_enabled: [403, 'FEATURE_NOT_ENABLED'],
  not_found: [404, 'NOT_FOUND'],
  name_taken: [409, 'NAME_TAKEN'],
  immutable_compute: [409, 'IMMUTABLE_COMPUTE'],
  deleted: [409, 'DELETED'],
  conflict: [409, 'CONFLICT'],
  stale_revision: [409, 'STALE_REVISION'],
  no_earlier_revision: [409, 'NO_EARLIER_REVISION'],
  pending_update_exists: [409, 'PENDING_UPDATE_EXISTS'],
  no_pending_update: [409, 'NO_PENDING_UPDATE'],
  release_deleted: [409, 'RELEASE_DELETED'],
  too_many: [429, 'QUOTA_EXCEEDED'],
}

const KNOWN: ReadonlySet<number> = new Set([400, 401, 402, 403, 404, 405, 409, 429])

export function createAnswerDeployError(log: Log): AnswerError {
  const defect = toFlat(500, 'INTERNAL', DEFECT_MESSAGE)
  const answer = createErrorBoundary(log, { answerRefusal, defect })
  return (error, requestId) => {
    if (!(error instanceof DeployError)) return answer(error, requestId)
    const [status, code] = REFUSED[error.refusal]
    return toFlat(status, code, error.message)
  }
}

function answerRefusal({ refusal, message, retryAfterSeconds }: ServiceError): ErrorAnswer {
  const status = REFUSAL_STATUS[refusal]
  return toFlat(toKnown(status), toCode(refusal), message, retryAfterSeconds)
}

function toKnown(status: number): number {
  if (KNOWN.has(status) || status >= 500) return status
  return 400
}

function toCode(refusal: Refusal): string {
  return refusal === 'invalid_field' ? 'INVALID_REQUEST' : refusal.toUpperCase()
}

function toFlat(status: number, error: string, message: string, retryAfterSeconds: number | null = null): ErrorAnswer {
  return toJsonAnswer(status, { error, message }, retryAfterSeconds)
}
