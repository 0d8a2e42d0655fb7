/** Refusals in front of the protocol as errors of JSON-RPC, with the status that clients act on. */
import type { Log } from '../../../lib/log.ts'
import type { ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, toRetryAfter } from '../kit/answer-errors.ts'
import { REFUSAL_STATUS } from '../kit/refusal-status.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

// Of the range that JSON-RPC leaves to servers; the status says what kind it is.
const REFUSED = -32_000
const INTERNAL_ERROR = -32_603

export function createAnswerMcpError(log: Log): AnswerError {
  return createErrorBoundary(log, { answerRefusal, defect: toAnswer(500, INTERNAL_ERROR, DEFECT_MESSAGE) })
}

function answerRefusal({ refusal, message, retryAfterSeconds }: ServiceError): ErrorAnswer {
  const answer = toAnswer(REFUSAL_STATUS[refusal], REFUSED, message)
  const headers: Record<string, string> = { ...answer.headers }
  if (answer.status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (answer.status === 429 || answer.status === 503) headers['Retry-After'] = toRetryAfter(retryAfterSeconds)
  return { ...answer, headers }
}

function toAnswer(status: number, code: number, message: string): ErrorAnswer {
  const body = JSON.stringify({ jsonrpc: '2.0', id: null, error: { code, message } })
  return { status, headers: { 'Content-Type': 'application/json' }, body }
}
