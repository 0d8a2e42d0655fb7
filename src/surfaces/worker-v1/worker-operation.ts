/** What every operation of the worker protocol gets: who asks, and its body, checked against the contract. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isUuid } from '../../../lib/ids.ts'
import { ServiceError } from '../../domain/errors.ts'
import type { Lease } from '../../domain/jobs/job-store.ts'
import type { WorkerGateway } from '../../domain/workers/worker-gateway.ts'
import type { WorkerIdentity } from '../../domain/workers/worker-keys.ts'
import { readQuery } from '../kit/request-url.ts'

export const WORKER_PATH = '/worker/v1'
export const VERSION_HEADER = 'atelier-worker-version'
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

/**
 * Aborted when the worker disconnects before the answer was written. A worker that ends its side of the connection has gone: it
 * waits for nothing any more, and a job that was found for it must not wait for it either.
 */
export function untilGone({ raw: { socket } }: FastifyRequest, reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  const leave = () => gone.abort()
  socket.once('end', leave)
  reply.raw.once('close', () => {
    socket.off('end', leave)
    if (!reply.raw.writableFinished) leave()
  })
  if (reply.raw.destroyed || socket.readableEnded) leave()
  return gone.signal
}
