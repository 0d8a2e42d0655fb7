import type { FastifyReply } from 'fastify'

/** A text or a buffer is JSON already. The media type is exactly this one, because JSON has no charset parameter. */
export function sendJson(reply: FastifyReply, status: number, body: object | string | Buffer): FastifyReply {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  return reply.code(status).header('content-type', 'application/json').send(bytes)
}
