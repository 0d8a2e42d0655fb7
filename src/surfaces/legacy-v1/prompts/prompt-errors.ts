/** The one error shape of `POST /prompt`: clients show `error.message` and mark the nodes of `node_errors`. */
import { ServiceError } from '../../../domain/errors.ts'
import type { PromptNodeErrors } from '../../../domain/jobs/submit/submit-prompt.ts'
import type { AnswerError } from '../../kit/surface.ts'

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
