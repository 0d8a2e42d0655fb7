import type { FastifyReply } from 'fastify'

/** Sends ready-made JSON; exactly this media type, because JSON has no charset parameter. */
export function sendJson(reply: FastifyReply, status: number, json: string | Buffer): FastifyReply {
  return reply
    .code(status)
    .header('content-type', 'application/json')
    .send(Buffer.isBuffer(json) ? json : Buffer.from(json))
}
