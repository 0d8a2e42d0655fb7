/** The result of a queued request: what the same call would have answered at once, byte for byte; 202 until then. */
import type { FastifyInstance, FastifyReply } from 'fastify'
import type { BlobStore } from '../../../domain/assets/blob-store.ts'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { CallResult } from '../../../domain/models/calls/call-store.ts'
import type { ModelQueue } from '../../../domain/models/queue/model-queue.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { type OperationKit, sendJson } from '../operation.ts'
import { MODEL_ROUTE, type RequestParams } from '../paths.ts'
import { retryAfterOf, statusOf, toRequestView } from '../request-view.ts'
import { mustBeResult } from '../serve-run.ts'

export interface GetRequestDeps {
  readonly kit: OperationKit
  readonly access: Pick<Access, 'catalogFor'>
  readonly queue: Pick<ModelQueue, 'find'>
  readonly blobs: Pick<BlobStore, 'open'>
  readonly costHeaders: (costMicros: number | null) => readonly string[]
}

export function getRequest(app: FastifyInstance, { kit, access, queue, blobs, costHeaders }: GetRequestDeps): void {
  async function sendResult(
    reply: FastifyReply,
    { contentType, body, sizeBytes, costMicros }: CallResult,
  ): Promise<FastifyReply> {
    const cost = costHeaders(costMicros)
    for (let at = 0; at < cost.length; at += 2) reply.header(cost[at], cost[at + 1])
    reply.code(200).header('content-type', contentType).header('content-length', sizeBytes)
    return reply.send(body.kind === 'inline' ? Buffer.from(body.bytes) : await blobs.open(body.hash))
  }

  app.get<{ Params: RequestParams }>(`${MODEL_ROUTE}/requests/:requestId`, async (request, reply) => {
    const { caller, baseUrl } = kit.contextOf(request)
    access.catalogFor(caller)
    const { provider, model, requestId } = request.params
    const found = await queue.find(caller.accountId, `${provider}/${model}`, requestId)
    if (statusOf(found) !== 'COMPLETED') {
      return sendJson(reply.header('retry-after', String(retryAfterOf(found))), 202, toRequestView(found, baseUrl))
    }
    if (found.end === null) throw new RouterError('internal', 'the result of this request is not there')
    return sendResult(reply, mustBeResult({ end: found.end, isReplay: false, spend: null }))
  })
}
