/** Refusals in the console's envelope: the service's own words, the field that they are about, and the request's id. */
import type { Log } from '../../../lib/log.ts'
import type { ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, toRetryAfter } from '../kit/answer-errors.ts'
import { REFUSAL_STATUS } from '../kit/refusal-status.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

export function createConsoleAnswerError(log: Log): AnswerError {
  const answer = createErrorBoundary(log, {
    answerRefusal,
    defect: toAnswer(500, 'internal_error', DEFECT_MESSAGE, null),
  })
  return answer
}

function answerRefusal({ refusal, message, details, retryAfterSeconds }: ServiceError): ErrorAnswer {
  const status = REFUSAL_STATUS[refusal]
  const answer = toAnswer(status, refusal, message, details)
  if (status !== 429 && status !== 503) return answer
  return { ...answer, headers: { ...answer.headers, 'Retry-After': toRetryAfter(retryAfterSeconds) } }
}

function toAnswer(status: number, code: string, message: string, details: ServiceError['details']): ErrorAnswer {
  const body = JSON.stringify({ error: { code, message, details } })
  return { status, headers: { 'Content-Type': 'application/json' }, body }
}
