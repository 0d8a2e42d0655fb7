/** Refusals in the envelope of the worker protocol. Anything that is not a refusal is a defect and logged once. */
import type { Log } from '../../../lib/log.ts'
import { type RefusalDetails, ServiceError } from '../../domain/errors.ts'
import { DEFECT_MESSAGE, toRetryAfter } from '../kit/answer-errors.ts'
import { toMalformedRequest } from '../kit/guards/http-refusals.ts'
import { REFUSAL_STATUS } from '../kit/refusal-status.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

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
  const answer = toAnswer(REFUSAL_STATUS[refusal], { type: refusal, message, details, requestId })
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
