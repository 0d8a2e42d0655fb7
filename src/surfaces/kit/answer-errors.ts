/** What the error answers of all surfaces share: what is logged, what a caller learns of a defect, and `Retry-After`. */
import type { Log } from '../../../lib/log.ts'
import { ServiceError } from '../../domain/errors.ts'
import { toHttpRefusal } from './guards/http-refusals.ts'
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
