/** Refusals in the flat envelope of the official command line: `{"error": "CODE", "message": "text"}`, with `invalid` for definitions. */
import type { Log } from '../../../lib/log.ts'
import { BuildError, type BuildRefusal } from '../../domain/environments/build-error.ts'
import type { ServiceError } from '../../domain/errors.ts'
import { createErrorBoundary, DEFECT_MESSAGE, REFUSAL_STATUS, toJsonAnswer } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

const REFUSED: Readonly<Record<BuildRefusal, readonly [status: number, code: string]>> = {
  invalid_request: [400, 'INVALID_REQUEST'],
  invalid_definition: [400, 'INVALID_DEFINITION'],
  not_enabled: [403, 'FEATURE_NOT_ENABLED'],
  not_found: [404, 'NOT_FOUND'],
  stale: [409, 'STALE'],
  build_limit: [409, 'BUILD_LIMIT'],
  release_limit: [409, 'RELEASE_LIMIT'],
  blob_limit: [409, 'BLOB_LIMIT'],
  build_in_use: [409, 'BUILD_IN_USE'],
  release_in_use: [409, 'RELEASE_IN_USE'],
  concurrency_limit: [429, 'CONCURRENCY_LIMIT'],
}

export function createAnswerBuildError(log: Log): AnswerError {
  const defect = toFlat(500, 'INTERNAL', DEFECT_MESSAGE)
  const answer = createErrorBoundary(log, { answerRefusal, defect })
  return (error, requestId) => {
    if (!(error instanceof BuildError)) return answer(error, requestId)
    const [status, code] = REFUSED[error.refusal]
    const invalid = error.faults.length === 0 ? {} : { invalid: error.faults }
    return toJsonAnswer(status, { error: code, message: error.message, ...invalid })
  }
}

function answerRefusal({ refusal, message, retryAfterSeconds }: ServiceError): ErrorAnswer {
  // The client knows no 422.
  const status = REFUSAL_STATUS[refusal] === 422 ? 400 : REFUSAL_STATUS[refusal]
  const code = refusal === 'invalid_field' ? 'INVALID_REQUEST' : refusal.toUpperCase()
  return toFlat(status, code, message, retryAfterSeconds)
}

function toFlat(status: number, error: string, message: string, retryAfterSeconds: number | null = null): ErrorAnswer {
  return toJsonAnswer(status, { error, message }, retryAfterSeconds)
}
