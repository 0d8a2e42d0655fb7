/**
 * Refusals as ComfyUI's nodes read them: they show `error.message` and `error.type`, say "please login" on 401 and "add credits"
 * on 402, and send the request again on 429 and 5xx. So what the next try may solve has such a status, and nothing else has.
 */
import type { Log } from '../../../lib/log.ts'
import { ServiceError } from '../../domain/errors.ts'
import { RouterError, type RouterRefusal } from '../../domain/models/router-error.ts'
import {
  DEFECT_MESSAGE,
  REFUSAL_STATUS,
  ROUTER_REFUSAL_STATUS,
  toHttpRefusal,
  toRetryAfter,
} from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

const STATUS: Readonly<Record<RouterRefusal, number>> = {
  ...ROUTER_REFUSAL_STATUS,
  // Nothing is sent again, and a new job may.
  key_unusable: 422,
  cancelled: 422,
  already_completed: 422,
  // The first send of this request is under way: the node's next try gets its answer.
  key_running: 503,
  forgotten_request: 404,
}

/** Where the router's own words speak of keys that no node has. */
const WORDS: Partial<Record<RouterRefusal, string>> = {
  key_unusable:
    'this call was sent once and cut off, and its answer cannot be had any more. Nothing is charged for it now; run the workflow again as a new job',
  key_running: 'the first send of this call is still under way; the same request gets its answer',
}

export function createAnswerNodeError(log: Log): AnswerError {
  return (error, requestId) => {
    if (error instanceof RouterError) {
      const { refusal, message, failures, retryAfterSeconds } = error
      const list = failures?.map(({ loc, msg }) => `${loc.slice(1).join('.')}: ${msg}`).join('; ')
      const words = WORDS[refusal] ?? (list === undefined ? message : `${message} (${list})`)
      return toAnswer(STATUS[refusal], { type: refusal, message: words, retryAfterSeconds, requestId })
    }
    const known = error instanceof ServiceError ? error : toHttpRefusal(error)
    if (known !== null) {
      const { refusal: type, message, retryAfterSeconds } = known
      return toAnswer(REFUSAL_STATUS[type], { type, message, retryAfterSeconds, requestId })
    }
    log.error({ err: error, requestId }, 'a request of a partner node failed unexpectedly')
    return toAnswer(500, { type: 'internal', message: DEFECT_MESSAGE, retryAfterSeconds: null, requestId })
  }
}

interface Told {
  readonly type: string
  readonly message: string
  readonly retryAfterSeconds: number | null
  readonly requestId: string
}

function toAnswer(status: number, { type, message, retryAfterSeconds, requestId }: Told): ErrorAnswer {
  const headers: Record<string, string> = { 'Content-Type': 'application/json' }
  if (status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (retryAfterSeconds !== null) headers['Retry-After'] = toRetryAfter(retryAfterSeconds)
  return { status, headers, body: JSON.stringify({ error: { type, message, request_id: requestId } }) }
}
