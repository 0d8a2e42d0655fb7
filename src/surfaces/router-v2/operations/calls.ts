/** Calls of models: answered at once, queued, and what one would cost. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { Caller } from '../../../domain/accounts/caller.ts'
import type { BlobStore } from '../../../domain/assets/blob-store.ts'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { OpenedModel } from '../../../domain/models/access/own-models.ts'
import type { CallResult } from '../../../domain/models/calls/call-store.ts'
import type { EstimateModel } from '../../../domain/models/calls/run-call.ts'
import type { Estimate } from '../../../domain/models/pricing/pricing.ts'
import type { ModelQueue } from '../../../domain/models/queue/model-queue.ts'
import type { RequestState, StoredRequest } from '../../../domain/models/queue/request-store.ts'
import { RouterError } from '../../../domain/models/router-error.ts'
import { needs, serviceAddressOf } from '../../kit/guards/routes.ts'
import { fingerprintOf, mustBeResult, readCallTag, readKey } from '../../kit/model-calls.ts'
import { lenientQueryOf, sendJson } from '../../kit/request.ts'
import { errorTypeOf } from '../router-errors.ts'
import {
  type ContextOf,
  type CostHeaders,
  MODEL_ROUTE,
  MODELS_PATH,
  type ModelParams,
  RUN_RIGHT,
  type ServedHeaders,
} from '../router-operation.ts'
import { openWithQuery, readCallInput, type ServeRun } from '../serve-run.ts'

interface CallsDeps {
  readonly contextOf: ContextOf
  readonly access: Pick<Access, 'open' | 'choose'>
  readonly serveRun: ServeRun
  readonly estimate: EstimateModel
  /** When the prices in use were read. */
  readonly pricedAt: () => Date
  readonly maxBodyBytes: number
}

/** For requests that the hot path left to the framework. */
function runModel(app: FastifyInstance, { contextOf, serveRun }: CallsDeps): void {
  app.post<{ Params: ModelParams }>(MODEL_ROUTE, needs(RUN_RIGHT), async (request, reply) => {
    const { caller } = contextOf(request)
    const address = serviceAddressOf(request)
    reply.hijack()
    await serveRun(request.raw, reply.raw, { ...request.params, caller, address })
  })
}

async function openFor(
  request: FastifyRequest<{ Params: ModelParams }>,
  { access, caller }: Pick<CallsDeps, 'access'> & { readonly caller: Caller },
): Promise<OpenedModel> {
  const found = await access.open(caller, request.params.provider, request.params.model)
  return openWithQuery(found, request.raw.url, (wish) => access.choose(caller, found, wish))
}

/** What a call would cost. Nothing is dispatched or charged, and no price is promised. */
function estimateModel(app: FastifyInstance, deps: CallsDeps): void {
  const { contextOf, access, estimate, pricedAt, maxBodyBytes } = deps
  app.post<{ Params: ModelParams }>(`${MODEL_ROUTE}/estimate`, needs('models:run'), async (request, reply) => {
    const { caller } = contextOf(request)
    const opened = await openFor(request, { access, caller })
    const { body, input } = await readCallInput(request.raw, maxBodyBytes)
    const found = await estimate({ opened, accountId: caller.accountId, body, input })
    const common = { model: opened.model.id, currency: 'USD', pricing_as_of: pricedAt().toISOString() }
    return sendJson(reply, 200, { ...toEstimateView(found), ...common })
  })
}

export const CALL_OPERATIONS = [runModel, estimateModel]

function toEstimateView(estimate: Estimate): object {
  switch (estimate.source) {
    case 'exact':
      return { source: 'exact', amount: writeUsd(estimate.micros) }
    case 'estimated':
      return { source: 'estimated', min_amount: writeUsd(estimate.minMicros), max_amount: writeUsd(estimate.maxMicros) }
    case 'unknown':
      return { source: 'unknown', reason: estimate.reason }
  }
}

/** Calls that wait in a queue: submitted, watched, collected and canceled as requests. */
interface RequestsDeps {
  readonly contextOf: ContextOf
  readonly access: Pick<Access, 'open' | 'choose' | 'catalogFor'>
  readonly queue: ModelQueue
  readonly blobs: Pick<BlobStore, 'open'>
  readonly costHeaders: CostHeaders
  readonly servedHeaders: ServedHeaders
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
    const opened = await openFor(request, { access, caller })
    const key = readKey(request.raw)
    const { body, input } = await readCallInput(request.raw, maxBodyBytes)
    const fingerprint = key === null ? '' : fingerprintOf(request.raw, body)
    const { accountId, keyId } = caller
    const webhook = lenientQueryOf(request.raw.url ?? '').get('webhook')
    const tag = readCallTag(request.raw.headers)
    const call = { opened, accountId, keyId, key, fingerprint, body, input, baseUrl, webhook, tag }
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
  const { contextOf, queue, blobs, costHeaders, servedHeaders } = deps

  async function sendResult(reply: FastifyReply, result: CallResult): Promise<FastifyReply> {
    const { contentType, body, sizeBytes, costMicros } = result
    const told = [...costHeaders(costMicros), ...servedHeaders(result.served ?? null)]
    for (let at = 0; at < told.length; at += 2) reply.header(told[at], told[at + 1])
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

/** A queued request as its owner sees it. Failure and cancel are ends like any other: `COMPLETED`, with an error type. */
type RequestStatus = 'IN_QUEUE' | 'IN_PROGRESS' | 'COMPLETED'

const STATUS: Readonly<Record<RequestState, RequestStatus>> = {
  waiting: 'IN_QUEUE',
  running: 'IN_PROGRESS',
  done: 'COMPLETED',
  interrupted: 'COMPLETED',
  unusable: 'COMPLETED',
  canceled: 'COMPLETED',
  gone: 'COMPLETED',
}

function statusOf({ state }: StoredRequest): RequestStatus {
  return STATUS[state]
}

interface RequestLink {
  readonly baseUrl: string
  readonly modelId: string
  readonly requestId: string
}

function toRequestUrls({ baseUrl, modelId, requestId }: RequestLink): object {
  const self = `${baseUrl}${MODELS_PATH}/${modelId}/requests/${requestId}`
  return { status_url: `${self}/status`, response_url: self, cancel_url: `${self}/cancel` }
}

function toRequestView(request: StoredRequest, baseUrl: string): object {
  const { id, modelId, position, end } = request
  const errorType = end?.kind === 'refusal' ? errorTypeOf(end.refusal.refusal) : null
  return {
    request_id: id,
    status: statusOf(request),
    ...(position === null ? {} : { queue_position: position }),
    ...(errorType === null ? {} : { error_type: errorType }),
    ...toRequestUrls({ baseUrl, modelId, requestId: id }),
  }
}

// At the back of the queue it is not worth asking every second.
const SECONDS_PER_POSITION = 2
const MAX_RETRY_SECONDS = 60

function retryAfterOf({ position }: StoredRequest): number {
  return Math.min(MAX_RETRY_SECONDS, 1 + (position ?? 0) * SECONDS_PER_POSITION)
}
