/** The published error types, and which of them stands for each refusal. Several refusals share a type. */
import type { RouterRefusal } from '../../domain/models/router-error.ts'

/** The first fifteen on every route, the others on the queue routes only. */
export const ROUTER_ERROR_TYPES = [
  'invalid_input',
  'content_policy_violation',
  'provider_error',
  'provider_timeout',
  'insufficient_credits',
  'model_not_found',
  'unauthorized',
  'forbidden',
  'concurrency_limit_exceeded',
  'client_disconnected',
  'internal_error',
  'deadline_exceeded',
  'not_enabled',
  'service_unavailable',
  'rate_limited',
  'cancelled',
  'queue_timeout',
  'request_not_found',
  'queue_backlog_full',
  'already_completed',
] as const
export type RouterErrorType = (typeof ROUTER_ERROR_TYPES)[number]

const ERROR_TYPES: Readonly<Record<RouterRefusal, RouterErrorType>> = {
  malformed: 'invalid_input',
  wrong_method: 'invalid_input',
  too_large: 'invalid_input',
  invalid_fields: 'invalid_input',
  provider_refused_input: 'invalid_input',
  key_unusable: 'invalid_input',
  key_running: 'concurrency_limit_exceeded',
  policy: 'content_policy_violation',
  provider_failed: 'provider_error',
  provider_timeout: 'provider_timeout',
  no_credits: 'insufficient_credits',
  unknown_model: 'model_not_found',
  unauthorized: 'unauthorized',
  forbidden: 'forbidden',
  calls_exhausted: 'concurrency_limit_exceeded',
  spend_exhausted: 'concurrency_limit_exceeded',
  rate: 'rate_limited',
  disconnected: 'client_disconnected',
  internal: 'internal_error',
  deadline: 'deadline_exceeded',
  not_enabled: 'not_enabled',
  unavailable: 'service_unavailable',
  cancelled: 'cancelled',
  already_completed: 'already_completed',
  waited_too_long: 'queue_timeout',
  unknown_request: 'request_not_found',
  forgotten_request: 'request_not_found',
  backlog_full: 'queue_backlog_full',
}

export function errorTypeOf(refusal: RouterRefusal): RouterErrorType {
  return ERROR_TYPES[refusal]
}
