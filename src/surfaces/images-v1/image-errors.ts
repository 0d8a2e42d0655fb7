/**
 * Refusals and failures as OpenAI's clients read them. They send a request again on 408, 409, 429 and 5xx, without any key: whatever may
 * have made a job says that they must not.
 */
import type { Log } from '../../../lib/log.ts'
import { type Refusal, type RefusalDetails, ServiceError } from '../../domain/errors.ts'
import { DEFECT_MESSAGE, REFUSAL_STATUS, toHttpRefusal, toRetryAfter } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

/** What became of a run that was accepted. */
export class RunError extends Error {
  readonly status: number
  readonly code: string

  constructor(status: number, code: string, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

export function modelNotFound(model: string): ServiceError {
  const shown = JSON.stringify(model.slice(0, 64))
  return new ServiceError(
    'not_found',
    `there is no model ${shown}: it is the name of an endpoint, or one of the models in the settings of one`,
    { details: { field: 'model', code: 'model_not_found' } },
  )
}

export interface ImageErrorBody {
  readonly message: string
  readonly type: string
  readonly param: string | null
  readonly code: string | null
}

interface Told {
  readonly status: number
  readonly error: ImageErrorBody
  readonly mayRetry: boolean
  readonly retryAfterSeconds: number | null
}

/** [status, code]; the rest is a bad request. */
const CODES: Partial<Record<Refusal, readonly [status: number, code: string]>> = {
  unauthorized: [401, 'invalid_api_key'],
  forbidden: [403, 'insufficient_permissions'],
  forbidden_origin: [403, 'insufficient_permissions'],
  forbidden_host: [403, 'insufficient_permissions'],
  insufficient_credits: [429, 'insufficient_quota'],
  spend_limit: [429, 'insufficient_quota'],
  subscription_inactive: [429, 'insufficient_quota'],
  rate_limited: [429, 'rate_limit_exceeded'],
  queue_full: [429, 'rate_limit_exceeded'],
  run_limit: [429, 'rate_limit_exceeded'],
  too_many_streams: [429, 'rate_limit_exceeded'],
  overloaded: [503, 'server_error'],
  shutting_down: [503, 'server_error'],
  deployment_not_ready: [503, 'server_error'],
  check_unavailable: [503, 'server_error'],
  refused_by_policy: [400, 'content_policy_violation'],
  store_unavailable: [503, 'server_error'],
  storage_full: [507, 'server_error'],
  not_found: [404, 'not_found'],
  wrong_method: [405, 'wrong_method'],
  payload_too_large: [413, 'payload_too_large'],
  unsupported_media_type: [415, 'unsupported_media_type'],
}
// Refused before anything was recorded.
const MAY_RETRY: ReadonlySet<Refusal> = new Set([
  ...(['rate_limited', 'queue_full', 'run_limit', 'too_many_streams'] as const),
  ...(['overloaded', 'shutting_down', 'deployment_not_ready', 'check_unavailable'] as const),
])

function toImageError(error: unknown): Told | null {
  if (error instanceof RunError) {
    const { status, code, message } = error
    const type = status < 500 ? 'invalid_request_error' : 'server_error'
    return { status, error: { message, type, param: null, code }, mayRetry: false, retryAfterSeconds: null }
  }
  const known = error instanceof ServiceError ? error : toHttpRefusal(error)
  if (known === null) return null
  const { refusal, message, details, retryAfterSeconds } = known
  const [status, code] = CODES[refusal] ?? [Math.min(REFUSAL_STATUS[refusal], 499), null]
  const type = status >= 500 ? 'server_error' : code === 'insufficient_quota' ? code : 'invalid_request_error'
  const { param, reason } = readDetails(details)
  return {
    status: status === 422 || status === 409 ? 400 : status,
    error: { message, type, param, code: reason ?? code },
    mayRetry: MAY_RETRY.has(refusal),
    retryAfterSeconds,
  }
}

const REASONS: Readonly<Record<string, string>> = {
  missing: 'missing_required_parameter',
  unknown: 'unknown_parameter',
}

/** The parameter, and the code where the details say more than the refusal. */
function readDetails(details: RefusalDetails | null): {
  readonly param: string | null
  readonly reason: string | null
} {
  const { field, code, inputs } = (details ?? {}) as {
    readonly field?: string
    readonly code?: string
    readonly inputs?: readonly { readonly name: string; readonly reason: string }[]
  }
  const [first] = inputs ?? []
  if (first !== undefined) return { param: first.name, reason: REASONS[first.reason] ?? 'invalid_value' }
  if (field === undefined) return { param: null, reason: null }
  return { param: field, reason: code ?? 'invalid_value' }
}

const DEFECT: Told = {
  status: 500,
  error: { message: DEFECT_MESSAGE, type: 'server_error', param: null, code: 'server_error' },
  mayRetry: false,
  retryAfterSeconds: null,
}

/** What is no refusal is logged, and told as a defect. */
export function createTellImageError(log: Log): (error: unknown, requestId: string) => Told {
  return (error, requestId) => {
    const told = toImageError(error)
    if (told === null) log.error({ err: error, requestId }, 'a request of an image client failed unexpectedly')
    return told ?? DEFECT
  }
}

export function createAnswerImageError(log: Log): AnswerError {
  const tell = createTellImageError(log)
  return (error, requestId) => toAnswer(tell(error, requestId), requestId)
}

function toAnswer({ status, error, mayRetry, retryAfterSeconds }: Told, requestId: string): ErrorAnswer {
  const headers: Record<string, string> = { 'Content-Type': 'application/json', 'x-request-id': requestId }
  if (status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (mayRetry) headers['Retry-After'] = toRetryAfter(retryAfterSeconds)
  else if (status >= 500 || status === 429) headers['x-should-retry'] = 'false'
  return { status, headers, body: JSON.stringify({ error }) }
}
