/** What every operation of this surface gets besides its own dependencies. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/accounts/caller.ts'

export interface RequestContext {
  readonly caller: Caller
  readonly requestId: string
  /** Scheme, authority and mount prefix, without a trailing slash: what absolute links begin with. */
  readonly baseUrl: string
}

export interface OperationKit {
  /** Set by the guards before any handler runs. */
  contextOf(request: FastifyRequest): RequestContext
}

/** Sends JSON with exactly this media type. */
export function sendJson(reply: FastifyReply, status: number, body: object | string | Buffer): FastifyReply {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return reply.code(status).header('content-type', 'application/json').send(bytes)
}
