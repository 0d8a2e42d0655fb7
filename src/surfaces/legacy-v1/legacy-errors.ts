/**
 * Refusals as this surface answers them. Clients of ComfyUI read `error`, clients of the hosted v1 read `code` and `message`,
 * so every body has all three. The table is total. Every answer has a JSON body, since one client parses each of them.
 */
import type { Log } from '../../../lib/log.ts'
import { type Refusal, ServiceError } from '../../domain/errors.ts'
import type { JobError } from '../../domain/jobs/job.ts'
import type { PromptNodeErrors } from '../../domain/jobs/submit/submit-prompt.ts'
import { createErrorBoundary, DEFECT_MESSAGE, toRetryAfter } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

const ANSWER: Readonly<Record<Refusal, readonly [status: number, code: string]>> = {
  invalid_request: [400, 'invalid_request'],
  invalid_field: [400, 'invalid_request'],
  invalid_metadata_filter: [400, 'invalid_request'],
  invalid_cursor: [400, 'invalid_request'],
  metadata_invalid: [400, 'invalid_request'],
  unauthorized: [401, 'unauthorized'],
  forbidden: [403, 'forbidden'],
  forbidden_origin: [403, 'forbidden'],
  forbidden_host: [403, 'forbidden'],
  not_found: [404, 'not_found'],
  wrong_method: [405, 'method_not_allowed'],
  blob_not_found: [404, 'not_found'],
  output_unavailable: [404, 'not_found'],
  hash_mismatch: [400, 'invalid_request'],
  asset_in_use: [409, 'conflict'],
  weights_conflict: [409, 'conflict'],
  offset_mismatch: [409, 'conflict'],
  upload_locked: [409, 'conflict'],
  checksum_mismatch: [400, 'invalid_request'],
  unsupported_version: [400, 'invalid_request'],
  unsupported_media_type: [400, 'invalid_request'],
  payload_too_large: [413, 'payload_too_large'],
  range_not_satisfiable: [416, 'invalid_range'],
  invalid_workflow: [400, 'invalid_prompt'],
  workflow_format_ui: [400, 'invalid_prompt'],
  missing_asset: [400, 'invalid_prompt'],
  batch_refused: [400, 'invalid_prompt'],
  invalid_input: [400, 'invalid_prompt'],
  breaking_change: [409, 'invalid_prompt'],
  revision_mismatch: [409, 'invalid_prompt'],
  not_waiting: [409, 'invalid_prompt'],
  endpoint_stopped: [400, 'invalid_prompt'],
  idempotency_key_reuse: [400, 'invalid_request'],
  queue_full: [429, 'QUEUE_LIMIT'],
  run_limit: [429, 'QUEUE_LIMIT'],
  rate_limited: [429, 'rate_limited'],
  too_many_streams: [429, 'too_many_streams'],
  insufficient_credits: [402, 'INSUFFICIENT_CREDITS'],
  spend_limit: [402, 'INSUFFICIENT_CREDITS'],
  subscription_inactive: [429, 'PAYMENT_REQUIRED'],
  deployment_not_ready: [429, 'deployment_not_ready'],
  deployment_stopped: [400, 'deployment_stopped'],
  refused_by_policy: [403, 'refused_by_policy'],
  check_unavailable: [503, 'check_unavailable'],
  link_invalid: [403, 'forbidden'],
  storage_full: [500, 'internal_error'],
  store_unavailable: [503, 'store_unavailable'],
  overloaded: [503, 'overloaded'],
  shutting_down: [429, 'QUEUE_LIMIT'],
}

const JSON_TYPE = 'application/json; charset=utf-8'

export function createAnswerError(log: Log): AnswerError {
  const defect = toAnswer(500, 'internal_error', DEFECT_MESSAGE)
  return createErrorBoundary(log, { answerRefusal, defect })
}

function answerRefusal(error: ServiceError): ErrorAnswer {
  const [status, code] = ANSWER[error.refusal]
  const answer = toAnswer(status, code, error.message)
  return { ...answer, headers: { ...answer.headers, ...refusalHeaders(error) } }
}

/** The headers that a refusal needs beside its body. */
function refusalHeaders(error: ServiceError): Record<string, string> {
  const [status] = ANSWER[error.refusal]
  if (status === 401) return { 'WWW-Authenticate': 'Bearer' }
  // Waiting does not make a subscription active.
  if ((status !== 429 && status !== 503) || error.refusal === 'subscription_inactive') return {}
  return { 'Retry-After': toRetryAfter(error.retryAfterSeconds) }
}

function toAnswer(status: number, code: string, message: string): ErrorAnswer {
  const body = JSON.stringify({ code, message, error: message })
  return { status, headers: { 'Content-Type': JSON_TYPE }, body }
}

/** The one error shape of `POST /prompt`: clients show `error.message` and mark the nodes of `node_errors`. */
interface PromptError {
  readonly type: string
  readonly message: string
  readonly details: string
  readonly extra_info: object
}

export interface PromptRefusal {
  readonly status: number
  readonly body: { readonly error: PromptError; readonly node_errors: object }
}

export function toPromptRefusal(status: number, error: PromptError, nodeErrors: PromptNodeErrors = {}): PromptRefusal {
  return { status, body: { error, node_errors: toShownErrors(nodeErrors) } }
}

// An editor marks the faulty nodes; people do not correct more than these before they submit again.
const MAX_SHOWN_NODES = 1000

/** Bounded, so that the answer stays readable for a graph of any size. */
export function toShownErrors(nodeErrors: PromptNodeErrors): PromptNodeErrors {
  const faulty = Object.entries(nodeErrors)
  return faulty.length <= MAX_SHOWN_NODES ? nodeErrors : Object.fromEntries(faulty.slice(0, MAX_SHOWN_NODES))
}

function promptError(type: string, message: string, details = ''): PromptError {
  return { type, message, details, extra_info: {} }
}

export const NO_PROMPT = toPromptRefusal(400, promptError('no_prompt', 'No prompt provided', 'No prompt provided'))

export const INVALID_PROMPT_ID = toPromptRefusal(
  400,
  promptError(
    'invalid_prompt_id',
    'prompt_id must be a valid UUID',
    'prompt_id must be a UUID string in canonical lowercase hyphenated form; omit it to let the server generate one',
  ),
)

const TAKEN_PROMPT_ID = toPromptRefusal(
  400,
  promptError(
    'invalid_prompt_id',
    'prompt_id is in use already',
    'There is a prompt with this id already; choose another one, or omit it to have one generated.',
  ),
)

/**
 * For every refusal of a submit, also those of the guards before it: a missing key, malformed JSON, a full queue, no credits,
 * a defect. Status and headers are those of the surface.
 */
export function createAnswerPromptError(answerError: AnswerError): AnswerError {
  return (error, requestId) => {
    const answer = answerError(error, requestId)
    const { code, message } = JSON.parse(answer.body) as { readonly code: string; readonly message: string }
    const type = code === 'invalid_request' ? 'invalid_prompt' : code
    const refusal = isTakenId(error) ? TAKEN_PROMPT_ID : toPromptRefusal(answer.status, promptError(type, message))
    return { ...answer, status: refusal.status, body: JSON.stringify(refusal.body) }
  }
}

function isTakenId(error: unknown): boolean {
  return error instanceof ServiceError && error.refusal === 'invalid_field' && error.details?.['field'] === 'id'
}

// Why a run failed, in the words of this surface: the name from the contract where the cause has one, otherwise the class of
// the node's own exception. Pure. The history and the socket both use it, so that they agree.

/** The names that the contract lists. */
type ExceptionType =
  | 'ValidationError'
  | 'ModelDownloadError'
  | 'ImageDownloadError'
  | 'OOMError'
  | 'InsufficientFundsError'
  | 'InactiveSubscriptionError'

const OF_CODE: Readonly<Record<string, ExceptionType>> = {
  invalid_workflow: 'ValidationError',
  missing_node_type: 'ValidationError',
  missing_node_class: 'ValidationError',
  validation_failed: 'ValidationError',
  engine_rejected: 'ValidationError',
  input_too_large: 'ValidationError',
  missing_model: 'ModelDownloadError',
  missing_weights: 'ModelDownloadError',
  model_unavailable: 'ModelDownloadError',
  model_download_failed: 'ModelDownloadError',
  missing_asset: 'ImageDownloadError',
  input_unavailable: 'ImageDownloadError',
  image_download_failed: 'ImageDownloadError',
  out_of_memory: 'OOMError',
  insufficient_credits: 'InsufficientFundsError',
  subscription_inactive: 'InactiveSubscriptionError',
}

const OF_EXCEPTION: readonly (readonly [RegExp, ExceptionType])[] = [
  [/(^|\.)(OutOfMemoryError|MemoryError|OOM_EXCEPTION)$/, 'OOMError'],
]

/** `engineType` is the engine's own exception name, such as `torch.OutOfMemoryError`; null when it gave none. */
export function toExceptionType(error: Pick<JobError, 'code'>, engineType: string | null): string {
  const known = Object.hasOwn(OF_CODE, error.code) ? OF_CODE[error.code] : undefined
  if (known !== undefined) return known
  if (engineType === null || engineType === error.code) return 'ServiceError'
  if (CONTRACT_NAMES.has(engineType)) return engineType
  return OF_EXCEPTION.find(([pattern]) => pattern.test(engineType))?.[1] ?? engineType
}

const CONTRACT_NAMES: ReadonlySet<string> = new Set<ExceptionType>([
  'ValidationError',
  'ModelDownloadError',
  'ImageDownloadError',
  'OOMError',
  'InsufficientFundsError',
  'InactiveSubscriptionError',
])

// Frames inside this service, as its engine writes them: callers must not see our source files.
const OWN_FRAME = /^\s+in .+, \S+\.ts line \d+$/

/** Lines with their line ends, without those that lead through our own source. */
export function toTraceback(traceback: string | null): string[] {
  if (traceback === null) return []
  return traceback
    .split('\n')
    .filter((line) => line !== '' && !OWN_FRAME.test(line))
    .map((line) => `${line}\n`)
}

/** The node that an end is about; empty texts where there is none, because the editor refuses null. */
export function toNodeNames(nodeId: string | null, classType: string | null): { node_id: string; node_type: string } {
  return { node_id: nodeId ?? '', node_type: classType ?? '' }
}

/** ComfyUI puts its advice after a line end, so clients expect one. */
export function toExceptionMessage(message: string): string {
  return message.endsWith('\n') ? message : `${message}\n`
}
