/** Where a queued request stands. */
import type { FastifyInstance } from 'fastify'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { ModelQueue } from '../../../domain/models/queue/model-queue.ts'
import { type OperationKit, sendJson } from '../operation.ts'
import { MODEL_ROUTE, type RequestParams } from '../paths.ts'
import { retryAfterOf, toRequestView } from '../request-view.ts'

export interface GetRequestStatusDeps {
  readonly kit: OperationKit
  readonly access: Pick<Access, 'catalogFor'>
  readonly queue: Pick<ModelQueue, 'find'>
}

export function getRequestStatus(app: FastifyInstance, { kit, access, queue }: GetRequestStatusDeps): void {
  app.get<{ Params: RequestParams }>(`${MODEL_ROUTE}/requests/:requestId/status`, async (request, reply) => {
    const { caller, baseUrl } = kit.contextOf(request)
    access.catalogFor(caller)
    const { provider, model, requestId } = request.params
    const found = await queue.find(caller.accountId, `${provider}/${model}`, requestId)
    return sendJson(reply.header('retry-after', String(retryAfterOf(found))), 200, toRequestView(found, baseUrl))
  })
}
