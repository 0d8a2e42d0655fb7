/** What every operation of the worker protocol gets: who asks, and its body, checked against the contract. */

import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { isUuid } from '../../../lib/ids.ts'
import type { Log } from '../../../lib/log.ts'
import { type RefusalDetails, ServiceError } from '../../domain/errors.ts'
import type { Lease } from '../../domain/jobs/job-store.ts'
import type { WorkerGateway } from '../../domain/workers/worker-gateway.ts'
import type { WorkerIdentity } from '../../domain/workers/worker-keys.ts'
import { DEFECT_MESSAGE, REFUSAL_STATUS, toJsonAnswer, toMalformedRequest } from '../kit/answer-errors.ts'
import { readQuery } from '../kit/request.ts'
import type { AnswerError, ErrorAnswer } from '../kit/surface.ts'

export const WORKER_PATH = '/worker/v1'
const VERSION_HEADER = 'atelier-worker-version'
export const INSTANCE_HEADER = 'atelier-worker-instance'

export interface WorkerKit {
  readonly gateway: WorkerGateway
  workerOf(request: FastifyRequest): WorkerIdentity
  /** The process that asks. */
  instanceOf(request: FastifyRequest): string
  /** Throws. */
  readBody<Body>(request: FastifyRequest, schemaName: string, maxBytes?: number): Promise<Body>
}

const HASH = /^[0-9a-f]{64}$/

export function jobIdOf(request: FastifyRequest): string {
  const { id } = request.params as { readonly id: string }
  if (!isUuid(id)) throw new ServiceError('not_found', 'this lease holds no such job')
  return id
}

export function hashOf(request: FastifyRequest): string {
  const { hash } = request.params as { readonly hash: string }
  if (!HASH.test(hash)) throw new ServiceError('invalid_request', 'the hash must have 64 lower-case hex digits')
  return hash
}

/** The lease that a request without a JSON body names in its query. */
export function leaseOf(request: FastifyRequest): Lease {
  const pairs = readQuery(request.raw.url ?? '') ?? []
  const leaseId = pairs.find(([name]) => name === 'lease_id')?.[1] ?? ''
  if (!isUuid(leaseId)) throw new ServiceError('invalid_request', 'lease_id is missing from the query')
  return { jobId: jobIdOf(request), leaseId }
}

// Which versions of the worker protocol this program speaks: its own and the one before, so that nodes and workers need not be upgraded at once.

const OWN_VERSION = 1
/** There is none before the first. */
export const PROTOCOL_VERSIONS: readonly number[] = [OWN_VERSION - 1, OWN_VERSION].filter((version) => version > 0)

/** Throws UpgradeRequired. */
export function mustSpeak(request: IncomingMessage, spoken: readonly number[]): void {
  const asked = request.headers[VERSION_HEADER]
  if (typeof asked === 'string' && /^\d{1,4}$/.test(asked) && spoken.includes(Number(asked))) return
  const newest = Math.max(...spoken)
  const isOlder = typeof asked === 'string' && Number(asked) < newest
  throw new UpgradeRequired(
    'version_unsupported',
    `this node speaks version ${spoken.join(' and ')} of the worker protocol; upgrade ${isOlder ? 'the worker' : 'the service first'}`,
    { protocol_versions: spoken },
  )
}

// Refusals in the envelope of the worker protocol. Anything that is not a refusal is a defect and logged once.

/** The worker speaks a version that this node does not, or asks for a WebSocket's address without one. */
export class UpgradeRequired extends Error {
  readonly type: 'version_unsupported' | 'upgrade_required'
  readonly details: RefusalDetails | null

  constructor(type: UpgradeRequired['type'], message: string, details: RefusalDetails | null = null) {
    super(message)
    this.type = type
    this.details = details
  }
}

export function createAnswerWorkerError(log: Log): AnswerError {
  return (error, requestId) => {
    if (error instanceof UpgradeRequired) {
      const answer = toAnswer(426, { ...error, message: error.message, requestId })
      return { ...answer, headers: { ...answer.headers, Upgrade: 'websocket' } }
    }
    const refusal = error instanceof ServiceError ? error : toMalformedRequest(error)
    if (refusal !== null) return answerRefusal(refusal, requestId)
    log.error({ err: error, requestId }, 'a request of a worker failed unexpectedly')
    return toAnswer(500, { type: 'internal_error', message: DEFECT_MESSAGE, details: null, requestId })
  }
}

function answerRefusal({ refusal, message, details, retryAfterSeconds }: ServiceError, requestId: string): ErrorAnswer {
  return toAnswer(REFUSAL_STATUS[refusal], { type: refusal, message, details, requestId }, retryAfterSeconds)
}

interface Told {
  readonly type: string
  readonly message: string
  readonly details: RefusalDetails | null
  readonly requestId: string
}

function toAnswer(status: number, { requestId, ...told }: Told, retryAfterSeconds: number | null = null): ErrorAnswer {
  const { type, message, details } = told
  return toJsonAnswer(status, { error: { type, message, details, request_id: requestId } }, retryAfterSeconds)
}
