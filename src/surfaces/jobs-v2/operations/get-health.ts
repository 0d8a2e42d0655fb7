/** Says that the process answers; asks nothing and nobody, and needs no token. */
import type { FastifyInstance } from 'fastify'
import { API_PATH } from '../links.ts'
import { sendJson } from '../send-json.ts'

const HEALTHY = Buffer.from('{"status":"healthy"}')

export function getHealth(app: FastifyInstance): void {
  app.get(`${API_PATH}/health`, (_request, reply) => sendJson(reply, 200, HEALTHY))
}
