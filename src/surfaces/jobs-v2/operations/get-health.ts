/** Says that the process answers; asks nothing and nobody, and needs no token. */
import type { FastifyInstance } from 'fastify'
import { sendJson } from '../send-json.ts'
import { API_PATH } from '../views/links.ts'

/** `upstream`: what runs the jobs; null: nobody's business. */
export function getHealth(app: FastifyInstance, { upstream }: { readonly upstream: string | null }): void {
  const healthy = Buffer.from(JSON.stringify({ status: 'healthy', ...(upstream !== null && { upstream }) }))
  app.get(`${API_PATH}/health`, (_request, reply) => sendJson(reply, 200, healthy))
}
