/** What a call would cost. Nothing is dispatched or charged, and no price is promised. */
import type { FastifyInstance } from 'fastify'
import { writeUsd } from '../../../../lib/usd.ts'
import type { Access } from '../../../domain/models/access/model-access.ts'
import type { EstimateModel } from '../../../domain/models/calls/run-call.ts'
import type { Estimate } from '../../../domain/models/pricing/pricing.ts'
import { readCallInput } from '../call-input.ts'
import { type OperationKit, sendJson } from '../operation.ts'
import { MODEL_ROUTE, type ModelParams } from '../paths.ts'
import { openWithQuery } from '../run-query.ts'

export interface EstimateModelDeps {
  readonly kit: OperationKit
  readonly access: Pick<Access, 'open'>
  readonly estimate: EstimateModel
  /** When the prices in use were read. */
  readonly pricedAt: () => Date
  readonly maxBodyBytes: number
}

export function estimateModel(app: FastifyInstance, deps: EstimateModelDeps): void {
  const { kit, access, estimate, pricedAt, maxBodyBytes } = deps
  app.post<{ Params: ModelParams }>(`${MODEL_ROUTE}/estimate`, async (request, reply) => {
    const { caller } = kit.contextOf(request)
    const opened = openWithQuery(access.open(caller, request.params.provider, request.params.model), request.raw.url)
    const { input } = await readCallInput(request.raw, maxBodyBytes)
    const found = await estimate({ opened, accountId: caller.accountId, input })
    const common = { model: opened.model.id, currency: 'USD', pricing_as_of: pricedAt().toISOString() }
    return sendJson(reply, 200, { ...toEstimateView(found), ...common })
  })
}

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
