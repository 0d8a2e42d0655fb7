/** One model's schemas as an OpenAPI document. */
import type { FastifyInstance } from 'fastify'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { Model } from '../../../domain/models/catalog/model.ts'
import type { ModelDocument } from '../model-document.ts'
import type { OperationKit } from '../operation.ts'
import { MODEL_ROUTE, type ModelParams } from '../paths.ts'
import { sendCached } from '../send-cached.ts'

export interface GetModelOpenapiDeps {
  readonly kit: OperationKit
  readonly access: Pick<Access, 'find'>
  readonly documentOf: (model: Model) => ModelDocument
}

export function getModelOpenapi(app: FastifyInstance, { kit, access, documentOf }: GetModelOpenapiDeps): void {
  app.get<{ Params: ModelParams }>(`${MODEL_ROUTE}/openapi.json`, (request, reply) => {
    const { caller } = kit.contextOf(request)
    const { model } = access.find(caller, request.params.provider, request.params.model)
    const { bytes, etag } = documentOf(model)
    return sendCached(request, reply, bytes, etag)
  })
}
