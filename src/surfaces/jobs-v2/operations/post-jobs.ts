/** Accepts a workflow. 201 means that the job is durably recorded and queued. */
import type { FastifyInstance } from 'fastify'
import { readIdempotencyKey } from '../../../domain/idempotency/idempotency-key.ts'
import type { Submit } from '../../../domain/jobs/submit/submit-job.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import type { ContractCheck } from '../../kit/contracts/contract.ts'
import { needs } from '../../kit/guards/rights.ts'
import { sendJson } from '../../kit/send-json.ts'
import type { ContextOf } from '../jobs-operation.ts'
import type { JobBytes } from '../views/job-bytes.ts'
import { API_PATH } from '../views/links.ts'
import { mustBeObject, readSubmitBody } from './submit-body.ts'

interface PostJobsDeps {
  readonly contextOf: ContextOf
  readonly submit: Submit
  readonly check: ContractCheck
  readonly jobBytes: JobBytes
  readonly maxBodyBytes: number
}

export function postJobs(app: FastifyInstance, deps: PostJobsDeps): void {
  const { contextOf, submit, check, jobBytes, maxBodyBytes } = deps
  app.post(`${API_PATH}/jobs`, needs('jobs:write'), async (request, reply) => {
    const context = contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readJsonBody(request, { maxBytes: maxBodyBytes })
    const fields = readSubmitBody(mustBeObject(body), check)
    const { accountId, keyId, pool } = context
    const job = await submit({ accountId, keyId, pool, ...fields, idempotencyKey })
    return sendJson(reply, 201, jobBytes(job, context))
  })
}
