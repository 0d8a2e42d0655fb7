/** What the API says of itself. */
import type { FastifyInstance } from 'fastify'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { API_PATH } from '../views/links.ts'

/**
 * Says that the process answers. Asks no other part of the service, and needs no token. `upstream`: what runs the jobs; null:
 * not told.
 */
export function getHealth(app: FastifyInstance, { upstream }: { readonly upstream: string | null }): void {
  const healthy = Buffer.from(JSON.stringify({ status: 'healthy', ...(upstream !== null && { upstream }) }))
  app.get(`${API_PATH}/health`, needs('public'), (_request, reply) => sendJson(reply, 200, healthy))
}

interface GetOpenapiDeps {
  readonly contextOf: ContextOf
  /** The document with this base as its only server. */
  readonly documentFor: (baseUrl: string) => string
}

/** The contract itself, with the address at which this caller reached us. */
export function getOpenapi(app: FastifyInstance, { contextOf, documentFor }: GetOpenapiDeps): void {
  app.get(`${API_PATH}/openapi.json`, needs('any_scope'), (request, reply) => {
    const { origin, mountPrefix } = contextOf(request)
    return sendJson(reply, 200, documentFor(origin + mountPrefix))
  })
}
