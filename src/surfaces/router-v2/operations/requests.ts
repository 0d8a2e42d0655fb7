/** Calls that wait in a queue: submitted, watched, collected and canceled as requests. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { BlobStore } from '../../../domain/assets/blob-store.ts'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { CallResult } from '../../../domain/models/calls/call-store.ts'
import type { ModelQueue } from '../../../domain/models/queue/model-queue.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { needs } from '../../kit/guards/rights.ts'
import { mustBeResult } from '../../kit/model-calls.ts'
import { lenientQueryOf } from '../../kit/request-url.ts'
import { sendJson } from '../../kit/send-json.ts'
import { fingerprintOf, readCallInput, readKey } from '../requests/call-input.ts'
import { openWithQuery } from '../requests/run-query.ts'
import type { CostHeaders } from '../router-headers.ts'
import { type ContextOf, MODEL_ROUTE, type ModelParams } from '../router-operation.ts'
import { retryAfterOf, statusOf, toRequestUrls, toRequestView } from '../views/request-view.ts'

interface RequestsDeps {
  readonly contextOf: ContextOf
  readonly access: Pick<Access, 'open' | 'catalogFor'>
  readonly queue: ModelQueue
  readonly blobs: Pick<BlobStore, 'open'>
  readonly costHeaders: CostHeaders
  readonly maxBodyBytes: number
}

interface RequestParams extends ModelParams {
  readonly requestId: string
}

const REQUEST_ROUTE = `${MODEL_ROUTE}/requests/:requestId`

/** 201 means that the call is durably recorded. */
function submitRequest(app: FastifyInstance, deps: RequestsDeps): void {
  const { contextOf, access, queue, maxBodyBytes } = deps
  app.post<{ Params: ModelParams }>(`${MODEL_ROUTE}/requests`, needs('models:run'), async (request, reply) => {
    const { caller, baseUrl } = contextOf(request)
    const opened = openWithQuery(
      await access.open(caller, request.params.provider, request.params.model),
      request.raw.url,
    )
    const key = readKey(request.raw)
    const { body, input } = await readCallInput(request.raw, maxBodyBytes)
    const fingerprint = key === null ? '' : fingerprintOf(request.raw, body)
    const { accountId, keyId } = caller
    const webhook = lenientQueryOf(request.raw.url ?? '').get('webhook')
    const call = { opened, accountId, keyId, key, fingerprint, body, input, baseUrl, webhook }
    const { requestId, position, isReplay } = await queue.submit(call)
    if (isReplay) reply.header('idempotent-replayed', 'true')
    return sendJson(reply, 201, {
      request_id: requestId,
      status: 'IN_QUEUE',
      queue_position: position,
      ...toRequestUrls({ baseUrl, modelId: opened.model.id, requestId }),
    })
  })
}

function getRequestStatus(app: FastifyInstance, deps: RequestsDeps): void {
  app.get<{ Params: RequestParams }>(`${REQUEST_ROUTE}/status`, needs('models:read'), async (request, reply) => {
    const found = await deps.queue.find(...(await ownerAndIds(request, deps)))
    reply.header('retry-after', String(retryAfterOf(found)))
    return sendJson(reply, 200, toRequestView(found, deps.contextOf(request).baseUrl))
  })
}

/** The result: what the same call would have answered at once, byte for byte; 202 until then. */
function getRequest(app: FastifyInstance, deps: RequestsDeps): void {
  const { contextOf, queue, blobs, costHeaders } = deps

  async function sendResult(reply: FastifyReply, result: CallResult): Promise<FastifyReply> {
    const { contentType, body, sizeBytes, costMicros } = result
    const cost = costHeaders(costMicros)
    for (let at = 0; at < cost.length; at += 2) reply.header(cost[at], cost[at + 1])
    reply.code(200).header('content-type', contentType).header('content-length', sizeBytes)
    return reply.send(body.kind === 'inline' ? Buffer.from(body.bytes) : await blobs.open(body.hash))
  }

  app.get<{ Params: RequestParams }>(REQUEST_ROUTE, needs('models:read'), async (request, reply) => {
    const found = await queue.find(...(await ownerAndIds(request, deps)))
    if (statusOf(found) !== 'COMPLETED') {
      reply.header('retry-after', String(retryAfterOf(found)))
      return sendJson(reply, 202, toRequestView(found, contextOf(request).baseUrl))
    }
    if (found.end === null) throw new RouterError('internal', 'the result of this request is not there')
    return sendResult(reply, mustBeResult({ end: found.end, isReplay: false, spend: null }))
  })
}

/** While the request waits this is free; later the provider is asked, and may finish all the same. */
function cancelRequest(app: FastifyInstance, deps: RequestsDeps): void {
  app.put<{ Params: RequestParams }>(`${REQUEST_ROUTE}/cancel`, needs('models:run'), async (request, reply) => {
    await deps.queue.cancel(...(await ownerAndIds(request, deps)))
    return sendJson(reply, 202, { request_id: request.params.requestId, status: 'CANCELLATION_REQUESTED' })
  })
}

export const REQUEST_OPERATIONS = [submitRequest, getRequestStatus, getRequest, cancelRequest]

/** Whose request is asked about, of which model, and which one. Throws for a caller that may not use models at all. */
async function ownerAndIds(
  request: FastifyRequest<{ Params: RequestParams }>,
  { contextOf, access }: RequestsDeps,
): Promise<[accountId: string, modelId: string, requestId: string]> {
  const { caller } = contextOf(request)
  await access.catalogFor(caller)
  const { provider, model, requestId } = request.params
  return [caller.accountId, `${provider}/${model}`, requestId]
}
