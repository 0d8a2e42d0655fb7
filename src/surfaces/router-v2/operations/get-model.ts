/** One model's entry. */
import type { FastifyInstance } from 'fastify'
import type { Access } from '../../../domain/models/access/model-access.ts'
import { toModelDetail } from '../model-view.ts'
import type { OperationKit } from '../operation.ts'
import { MODEL_ROUTE, type ModelParams } from '../paths.ts'
import { sendCached } from '../send-cached.ts'

export interface GetModelDeps {
  readonly kit: OperationKit
  readonly access: Pick<Access, 'find'>
}

export function getModel(app: FastifyInstance, { kit, access }: GetModelDeps): void {
  app.get<{ Params: ModelParams }>(MODEL_ROUTE, (request, reply) => {
    const { caller, baseUrl } = kit.contextOf(request)
    const { model } = access.find(caller, request.params.provider, request.params.model)
    return sendCached(request, reply, JSON.stringify(toModelDetail(model, baseUrl)))
  })
}
