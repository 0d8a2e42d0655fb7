/**
 * What every operation of the admin API gets besides its own dependencies. A file of `operations/` holds the operations of one
 * resource, each a function that registers its route and bears the name that the contract gives it. An operation that changes
 * something writes through the stores of `audited`, which take the audit line along: there is no change without one.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Clock } from '../../../lib/clock.ts'
import type { Log } from '../../../lib/log.ts'
import type { AccountDirectory } from '../../domain/accounts/account-store.ts'
import type { KeyStore } from '../../domain/accounts/keys/key-store.ts'
import type { LedgerStore } from '../../domain/credits/ledger.ts'
import type { DeploymentStore } from '../../domain/deployments/deployment-store.ts'
import type { EndpointStore } from '../../domain/endpoints/endpoint-store.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { BulkStore } from '../../domain/jobs/bulk/bulk-store.ts'
import type { JobStore } from '../../domain/jobs/job-store.ts'
import type { QueueStore } from '../../domain/jobs/queue/queue-store.ts'
import { DEFECT_MESSAGE, REFUSAL_STATUS, toJsonAnswer, toMalformedRequest } from '../kit/answer-errors.ts'
import { readNumber, readParameters as readUrlParameters } from '../kit/request.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

export interface AuditedStores {
  readonly directory: AccountDirectory
  readonly apiKeys: KeyStore
  readonly ledger: LedgerStore
  readonly deployments: DeploymentStore
  readonly cancels: Pick<JobStore, 'cancel'>
  readonly endpointPrices: Pick<EndpointStore, 'setPrice'>
  readonly queue: Pick<QueueStore, 'pause' | 'resume' | 'change'>
  readonly bulkActions: Pick<BulkStore, 'create' | 'stop'>
}

/** What is about to be changed. Details must not hold a secret. */
interface Change {
  readonly action: string
  readonly subject: string
  readonly details: Readonly<Record<string, unknown>>
}

export interface AdminKit {
  readonly clock: Clock
  /** The stores, each of whose writes takes this change's audit line along. */
  audited(request: FastifyRequest, change: Change): AuditedStores
  /** Who asks, for the audit log. */
  actorOf(request: FastifyRequest): string
  /** The audit line of a change that no store holds. */
  note(request: FastifyRequest, change: Change): Promise<void>
  /** The body, checked against this schema of the contract; an empty one counts as an empty object. Throws. */
  readBody<Body>(request: FastifyRequest, schemaName: string): Promise<Body>
}

/** An operation with its dependencies: how other parts of the service add theirs. */
export type AdminOperation = (app: FastifyInstance, kit: AdminKit) => void

export const ADMIN_PATH = '/admin/v1'

/** Refusals in the envelope of the admin API. Anything that is not a refusal is a defect and logged once. */
export function createAdminAnswerError(log: Log): AnswerError {
  return (error, requestId) => {
    const refusal = error instanceof ServiceError ? error : toMalformedRequest(error)
    if (refusal !== null) return answerRefusal(refusal, requestId)
    log.error({ err: error, requestId }, 'an admin request failed unexpectedly')
    const defect = { type: 'internal_error', message: DEFECT_MESSAGE, field: null, request_id: requestId }
    return toJsonAnswer(500, { error: defect })
  }
}

function answerRefusal({ refusal, message, details, retryAfterSeconds }: ServiceError, requestId: string): ErrorAnswer {
  const field = typeof details?.['field'] === 'string' ? details['field'] : null
  const error = { type: refusal, message, field, request_id: requestId }
  return toJsonAnswer(REFUSAL_STATUS[refusal], { error }, retryAfterSeconds)
}

// The query of a page: `limit`, and where it begins. Strict, like every query here: what is not understood is refused.

const DEFAULT_LIMIT = 100
const MAX_LIMIT = 1000

/** Every parameter at most once, none that the operation does not name. */
export function readParameters(request: FastifyRequest, names: readonly string[]): ReadonlyMap<string, string> {
  return readUrlParameters(request.raw.url ?? '', names)
}

export function readLimit(parameters: ReadonlyMap<string, string>): number {
  return readNumber(parameters, 'limit', { fallback: DEFAULT_LIMIT, max: MAX_LIMIT })
}

/** A page of records and the `before` of the next one; `found` holds one record more than the page when there is a next one. */
export function toPage<Listed extends { readonly seq: number }>(found: readonly Listed[], limit: number) {
  const page = found.slice(0, limit)
  return { page, next: found.length > limit ? (page.at(-1)?.seq ?? null) : null }
}

/** null: from the newest on. */
export function readBefore(parameters: ReadonlyMap<string, string>): number | null {
  if (!parameters.has('before')) return null
  return readNumber(parameters, 'before', { fallback: 1, max: Number.MAX_SAFE_INTEGER })
}
