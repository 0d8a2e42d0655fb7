/** Calls a queued request off. While it waits that is free; later the provider is asked, and may finish all the same. */
import type { FastifyInstance } from 'fastify'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { ModelQueue } from '../../../domain/models/queue/model-queue.ts'
import { type OperationKit, sendJson } from '../operation.ts'
import { MODEL_ROUTE, type RequestParams } from '../paths.ts'

export interface CancelRequestDeps {
  readonly kit: OperationKit
  readonly access: Pick<Access, 'catalogFor'>
  readonly queue: Pick<ModelQueue, 'cancel'>
}

export function cancelRequest(app: FastifyInstance, { kit, access, queue }: CancelRequestDeps): void {
  app.put<{ Params: RequestParams }>(`${MODEL_ROUTE}/requests/:requestId/cancel`, async (request, reply) => {
    const { caller } = kit.contextOf(request)
    access.catalogFor(caller)
    const { provider, model, requestId } = request.params
    await queue.cancel(caller.accountId, `${provider}/${model}`, requestId)
    return sendJson(reply, 202, { request_id: requestId, status: 'CANCELLATION_REQUESTED' })
  })
}
