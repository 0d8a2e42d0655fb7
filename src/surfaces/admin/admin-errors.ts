/** Refusals in the envelope of the admin API. Anything that is not a refusal is a defect and logged once. */

import type { Log } from '../../../lib/log.ts'
import { ServiceError } from '../../domain/errors.ts'
import { DEFECT_MESSAGE, toRetryAfter } from '../kit/answer-errors.ts'
import { toMalformedRequest } from '../kit/guards/http-refusals.ts'
import { REFUSAL_STATUS } from '../kit/refusal-status.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

export function createAdminAnswerError(log: Log): AnswerError {
  return (error, requestId) => {
    const refusal = error instanceof ServiceError ? error : toMalformedRequest(error)
    if (refusal !== null) return answerRefusal(refusal, requestId)
    log.error({ err: error, requestId }, 'an admin request failed unexpectedly')
    return toAnswer(500, { type: 'internal_error', message: DEFECT_MESSAGE, field: null, request_id: requestId })
  }
}

interface ErrorBody {
  readonly type: string
  readonly message: string
  readonly field: string | null
  readonly request_id: string
}

function answerRefusal({ refusal, message, details, retryAfterSeconds }: ServiceError, requestId: string): ErrorAnswer {
  const field = typeof details?.['field'] === 'string' ? details['field'] : null
  const answer = toAnswer(REFUSAL_STATUS[refusal], { type: refusal, message, field, request_id: requestId })
  const headers = { ...answer.headers }
  if (answer.status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (answer.status === 429 || answer.status === 503) headers['Retry-After'] = toRetryAfter(retryAfterSeconds)
  return { ...answer, headers }
}

function toAnswer(status: number, error: ErrorBody): ErrorAnswer {
  return { status, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ error }) }
}
