/** Calls that are answered at once: running a model, and asking what that would cost. */
import type { FastifyInstance } from 'fastify'
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { EstimateModel } from '../../../domain/models/calls/run-call.ts'
import type { Estimate } from '../../../domain/models/pricing/pricing.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import { readCallInput } from '../requests/call-input.ts'
import { openWithQuery } from '../requests/run-query.ts'
import { type ContextOf, MODEL_ROUTE, type ModelParams, RUN_RIGHT } from '../router-operation.ts'
import type { ServeRun } from '../serve-run.ts'

interface CallsDeps {
  readonly contextOf: ContextOf
  readonly access: Pick<Access, 'open'>
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

/** What a call would cost. Nothing is dispatched or charged, and no price is promised. */
function estimateModel(app: FastifyInstance, deps: CallsDeps): void {
  const { contextOf, access, estimate, pricedAt, maxBodyBytes } = deps
  app.post<{ Params: ModelParams }>(`${MODEL_ROUTE}/estimate`, needs('models:run'), async (request, reply) => {
    const { caller } = contextOf(request)
    const opened = openWithQuery(
      await access.open(caller, request.params.provider, request.params.model),
      request.raw.url,
    )
    const { input } = await readCallInput(request.raw, maxBodyBytes)
    const found = await estimate({ opened, accountId: caller.accountId, input })
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
