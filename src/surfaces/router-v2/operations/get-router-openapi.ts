/** The contract of this surface, with the address at which this caller reached us. */
import type { FastifyInstance } from 'fastify'
import { MODELS_PATH } from '../paths.ts'
import type { OperationKit } from '../router-operation.ts'
import { sendCached } from '../send-cached.ts'

export interface GetRouterOpenapiDeps {
  readonly kit: OperationKit
  /** The document with this base as its only server. */
  readonly specFor: (baseUrl: string) => string
}

export function getRouterOpenapi(app: FastifyInstance, { kit, specFor }: GetRouterOpenapiDeps): void {
  app.get(`${MODELS_PATH}/openapi.json`, (request, reply) => {
    const { baseUrl } = kit.contextOf(request)
    return sendCached(request, reply, specFor(baseUrl))
  })
}
