/** What every operation of this surface shares: its paths, what it knows of its request, and how documents are sent. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Caller } from '../../domain/accounts/caller.ts'
import { matchesEtag, toEtag } from '../kit/content/etag.ts'
import { sendJson } from '../kit/send-json.ts'

export const MODELS_PATH = '/v2/models'
export const MODEL_ROUTE = `${MODELS_PATH}/:provider/:model`
/** For running a model, also in front of the framework. */
export const RUN_RIGHT = 'models:run'

export interface ModelParams {
  readonly provider: string
  readonly model: string
}

export interface RequestContext {
  readonly caller: Caller
  readonly requestId: string
  /** Scheme, authority and mount prefix, without a trailing slash: what absolute links begin with. */
  readonly baseUrl: string
}

/** The guards set the context before any handler runs. */
export type ContextOf = (request: FastifyRequest) => RequestContext

// Private: what a caller sees depends on who it is.
const CACHE_CONTROL = 'private, max-age=300, must-revalidate'

/** Sends a document that callers may cache: with an ETag, and without a body if the caller already has it. */
export function sendCached(
  request: FastifyRequest,
  reply: FastifyReply,
  body: string | Buffer,
  etag = toEtag(body),
): FastifyReply {
  reply.header('etag', etag).header('cache-control', CACHE_CONTROL)
  if (matchesEtag(request.headers['if-none-match'], etag)) return reply.code(304).send()
  return sendJson(reply, 200, body)
}
