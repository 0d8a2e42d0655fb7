/**
 * Refusals and failures as OpenAI's clients read them. They send a request again on 408, 409, 429 and 5xx, without any key: whatever may
 * have made something says that they must not.
 */
import type { Log } from '../../../lib/log.ts'
import { type Refusal, type RefusalDetails, ServiceError } from '../../domain/errors.ts'
import { RouterError, type RouterRefusal } from '../../domain/models/router-error.ts'
import { DEFECT_MESSAGE, REFUSAL_STATUS, ROUTER_REFUSAL_STATUS, toHttpRefusal, toRetryAfter } from './answer-errors.ts'
import type { AnswerError, ErrorAnswer } from './surface.ts'

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

export interface OpenAIError {
  readonly message: string
  readonly type: string
  readonly param: string | null
  readonly code: string | null
}

interface Told {
  readonly status: number
  readonly error: OpenAIError
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

function toOpenAIError(error: unknown): Told | null {
  if (error instanceof RunError) {
    const { status, code, message } = error
    const type = status < 500 ? 'invalid_request_error' : 'server_error'
    return { status, error: { message, type, param: null, code }, mayRetry: false, retryAfterSeconds: null }
  }
  if (error instanceof RouterError) return ofModel(error)
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

/** The code of each refusal of a model, and whether the same request may be sent again at once: surely nothing was made. */
const MODEL_CODES: Readonly<Record<RouterRefusal, readonly [code: string, mayRetry: boolean]>> = {
  malformed: ['invalid_request', false],
  wrong_method: ['wrong_method', false],
  too_large: ['payload_too_large', false],
  invalid_fields: ['invalid_value', false],
  provider_refused_input: ['invalid_value', false],
  key_unusable: ['idempotency_key_in_use', false],
  key_running: ['idempotency_key_in_use', true],
  policy: ['content_policy_violation', false],
  provider_failed: ['provider_error', false],
  provider_timeout: ['provider_timeout', false],
  no_credits: ['insufficient_quota', false],
  unknown_model: ['model_not_found', false],
  unauthorized: ['invalid_api_key', false],
  forbidden: ['insufficient_permissions', false],
  calls_exhausted: ['rate_limit_exceeded', true],
  spend_exhausted: ['rate_limit_exceeded', true],
  rate: ['rate_limit_exceeded', true],
  disconnected: ['server_error', false],
  internal: ['server_error', false],
  deadline: ['timeout', false],
  not_enabled: ['model_not_enabled', false],
  unavailable: ['server_error', true],
  cancelled: ['server_error', false],
  already_completed: ['invalid_request', false],
  waited_too_long: ['timeout', false],
  unknown_request: ['not_found', false],
  forgotten_request: ['not_found', false],
  backlog_full: ['rate_limit_exceeded', true],
}

function ofModel({ refusal, message, failures, retryAfterSeconds, goesOn }: RouterError): Told {
  const [code, mayRetry] = MODEL_CODES[refusal]
  const isQuota = refusal === 'no_credits'
  const status = isQuota ? 429 : refusal === 'invalid_fields' ? 400 : ROUTER_REFUSAL_STATUS[refusal]
  const type = isQuota ? code : status >= 500 ? 'server_error' : 'invalid_request_error'
  const [first] = failures ?? []
  const param = refusal === 'unknown_model' ? 'model' : first === undefined ? null : toParam(first.loc)
  const said = first === undefined ? message : `${message}: ${param ?? 'the body'} ${first.msg}`
  return { status, error: { message: said, type, param, code }, mayRetry: mayRetry && !goesOn, retryAfterSeconds }
}

/** `messages[0].role`, as those clients write it. */
function toParam(loc: readonly (string | number)[]): string | null {
  const steps = loc[0] === 'body' ? loc.slice(1) : loc
  const text = steps.map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`)).join('')
  return text === '' ? null : text.replace(/^\./, '')
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
export function createTellOpenAIError(log: Log): (error: unknown, requestId: string) => Told {
  return (error, requestId) => {
    const told = toOpenAIError(error)
    if (told === null) log.error({ err: error, requestId }, 'a request of an OpenAI client failed unexpectedly')
    return told ?? DEFECT
  }
}

export function createAnswerOpenAIError(log: Log): AnswerError {
  const tell = createTellOpenAIError(log)
  return (error, requestId) => toAnswer(tell(error, requestId), requestId)
}

function toAnswer({ status, error, mayRetry, retryAfterSeconds }: Told, requestId: string): ErrorAnswer {
  const headers: Record<string, string> = { 'Content-Type': 'application/json', 'x-request-id': requestId }
  if (status === 401) headers['WWW-Authenticate'] = 'Bearer'
  if (mayRetry) headers['Retry-After'] = toRetryAfter(retryAfterSeconds)
  else if (status >= 500 || status === 429 || status === 409) headers['x-should-retry'] = 'false'
  return { status, headers, body: JSON.stringify({ error }) }
}
