/** Answers what a submit would meet, and stores nothing. Only a request that is wrong as such is refused. */
import type { FastifyInstance } from 'fastify'
import type { ServiceError } from '../../../domain/errors.ts'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import type { TrySubmit } from '../../../domain/jobs/submit/dry-run.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import { createDryRunView, type Forecast } from '../views/dry-run-view.ts'
import { API_PATH } from '../views/links.ts'
import { mustBeObject, readSubmitBody } from './submit-body.ts'

interface ValidateJobDeps {
  readonly contextOf: ContextOf
  readonly trySubmit: TrySubmit
  readonly forecast: Forecast
  readonly check: ContractCheck
  readonly maxBodyBytes: number
}

export function validateJob(app: FastifyInstance, deps: ValidateJobDeps): void {
  const { contextOf, trySubmit, check, maxBodyBytes } = deps
  const toView = createDryRunView(deps.forecast)
  app.post(`${API_PATH}/jobs/validate`, needs('jobs:write'), async (request, reply) => {
    const { accountId, keyId, pool } = contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = mustBeObject(await readJsonBody(request, { maxBytes: maxBodyBytes }))
    const found: ServiceError[] = []
    const fields = readSubmitBody(body, check, (refusal) => found.push(refusal))
    const tried = await trySubmit({ accountId, keyId, pool, ...fields, idempotencyKey }, found)
    return sendJson(reply, 200, await toView(tried, { accountId, priority: fields.priority }))
  })
}
