/** Documents that callers keep: tagged, and not sent again to whoever has them. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { matchesEtag, toEtag } from '../kit/content/etag.ts'
import { sendJson } from './router-operation.ts'

// Private: what a caller sees depends on who it is.
const CACHE_CONTROL = 'private, max-age=300, must-revalidate'

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
