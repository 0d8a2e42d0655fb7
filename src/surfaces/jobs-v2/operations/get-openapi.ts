/** The contract itself, with the address at which this caller reached us. */
import type { FastifyInstance } from 'fastify'
import type { OperationKit } from '../jobs-operation.ts'
import { sendJson } from '../send-json.ts'
import { API_PATH } from '../views/links.ts'

export interface GetOpenapiDeps {
  readonly kit: OperationKit
  /** The document with this base as its only server. */
  readonly specFor: (baseUrl: string) => string
}

export function getOpenapi(app: FastifyInstance, { kit, specFor }: GetOpenapiDeps): void {
  app.get(`${API_PATH}/openapi.json`, (request, reply) => {
    const { origin, mountPrefix } = kit.contextOf(request)
    return sendJson(reply, 200, specFor(origin + mountPrefix))
  })
}
