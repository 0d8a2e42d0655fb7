/**
 * Refusals as a visitor reads them. He cannot mend what lies with the owner of the page, and must not learn from it what the endpoint is made of,
 * what the account has or how the service is set up: of those refusals only the kind is told.
 */
import type { Log } from '../../../lib/log.ts'
import type { InputProblem } from '../../domain/endpoints/endpoint.ts'
import type { Refusal, ServiceError } from '../../domain/errors.ts'
import type { JobError } from '../../domain/jobs/job.ts'
import { toSafeMessage } from '../../domain/jobs/outputs/hidden-runs.ts'
import { createErrorBoundary, DEFECT_MESSAGE, REFUSAL_STATUS, toJsonAnswer } from '../kit/answer-errors.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

/** What these say is about the request, or the link, and nothing else. */
const TOLD: ReadonlySet<Refusal> = new Set<Refusal>([
  ...(['invalid_request', 'invalid_field', 'not_found', 'wrong_method', 'forbidden_origin', 'forbidden_host'] as const),
  ...([
    'payload_too_large',
    'range_not_satisfiable',
    'unsupported_media_type',
    'endpoint_stopped',
    'rate_limited',
  ] as const),
  // What the operator's hook says is meant for whoever asked.
  ...(['refused_by_policy', 'check_unavailable', 'idempotency_key_reuse'] as const),
  ...(['too_many_streams', 'overloaded', 'shutting_down', 'store_unavailable'] as const),
])
const BUSY: ReadonlySet<Refusal> = new Set<Refusal>(['queue_full', 'deployment_not_ready'])

export function createAnswerShareError(log: Log): AnswerError {
  return createErrorBoundary(log, {
    answerRefusal,
    defect: toAnswer(500, 'internal_error', DEFECT_MESSAGE),
  })
}

function answerRefusal({ refusal, message, details, retryAfterSeconds }: ServiceError): ErrorAnswer {
  if (refusal === 'invalid_input')
    return toAnswer(422, refusal, 'some inputs are wrong', { details: toSafeInputs(details) })
  if (TOLD.has(refusal))
    return toAnswer(REFUSAL_STATUS[refusal], refusal, message, {
      details: refusal === 'invalid_field' ? details : null,
      retryAfterSeconds,
    })
  if (refusal === 'output_unavailable') return toAnswer(404, 'not_found', 'this file is gone')
  if (refusal === 'run_limit') return toAnswer(429, refusal, toLimitMessage(details), { retryAfterSeconds })
  if (refusal === 'spend_limit') return toAnswer(429, 'spend_limit', 'this page has used up what its owner gave it')
  if (BUSY.has(refusal))
    return toAnswer(429, 'busy', 'there is too much to do at the moment; try again soon', { retryAfterSeconds })
  return toAnswer(422, 'not_runnable', 'this page cannot run at the moment; only its owner can put that right')
}

/** Of the link or of the endpoint: whose bound it is, and how high, is the owner's business. */
function toLimitMessage(details: ServiceError['details']): string {
  if (details?.['limit'] === 'in_flight') return 'others are running this at the moment; try again soon'
  const until = details?.['until']
  return typeof until === 'string'
    ? `this page has had its runs for now; there are more at ${until}`
    : 'this page has had all the runs that its owner gave it'
}

/** What an engine says of a value names what it has. */
function toSafeInputs(details: ServiceError['details']): ServiceError['details'] {
  const problems = (details?.['inputs'] ?? []) as readonly InputProblem[]
  return {
    inputs: problems.map((problem) => {
      const { name, reason } = problem
      return reason === 'not_available' ? { name, reason, message: `${name}: this is not available here` } : problem
    }),
  }
}

interface More {
  readonly details?: ServiceError['details']
  readonly retryAfterSeconds?: number | null
}

function toAnswer(
  status: number,
  code: string,
  message: string,
  { details = null, retryAfterSeconds = null }: More = {},
) {
  return toJsonAnswer(status, { error: { code, message, ...(details !== null && { details }) } }, retryAfterSeconds)
}

/** Why a run failed: what a node says names nodes, files and weights. What the operator's hook says is meant for whoever ran it. */
export function toSafeFailure(error: JobError): { readonly code: string; readonly message: string } {
  const message = toSafeMessage(error)
  if (message !== null) return { code: error.code, message }
  return { code: 'failed', message: 'The run failed. Try other inputs, or tell whoever gave you this page.' }
}
