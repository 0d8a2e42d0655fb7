/** What a call would cost, after the same checks as a call; dispatches and charges nothing. */
import type { OpenedModel } from '../access/model-access.ts'
import type { JsonRecord } from '../catalog/model.ts'
import { type Estimate, estimatePrice, leastPrice } from '../pricing/pricing.ts'
import { RouterError } from '../router-error.ts'
import type { CallStore } from './call-store.ts'
import { toInvalid } from './run-call.ts'

export interface EstimateRequest {
  readonly opened: OpenedModel
  readonly accountId: string
  readonly input: JsonRecord | RouterError
}

/** Throws RouterError. */
export type EstimateModel = (request: EstimateRequest) => Promise<Estimate>

export function createEstimateModel(store: Pick<CallStore, 'canPay'>): EstimateModel {
  return async function estimateModel({ opened, accountId, input }) {
    const { model, isOwnKey } = opened
    const canPay = isOwnKey || (await store.canPay(accountId, leastPrice(model.price)))
    if (!canPay)
      throw new RouterError('no_credits', 'there are not enough credits to run this model; add credits and try again')
    if (input instanceof RouterError) throw input
    const failures = opened.checkInput(input)
    if (failures.length > 0) throw toInvalid(failures)
    return isOwnKey ? { source: 'exact', micros: 0 } : estimatePrice(model.price, input)
  }
}
