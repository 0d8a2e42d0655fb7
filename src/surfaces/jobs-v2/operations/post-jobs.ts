/** Accepts a workflow. 201 means that the job is durably recorded and queued. */
import type { FastifyInstance } from 'fastify'
import { readIdempotencyKey } from '../../../domain/idempotency/read-key.ts'
import type { Submit } from '../../../domain/jobs/submit/submit-job.ts'
import { readJsonBody } from '../../kit/json-body.ts'
import type { SpecCheck } from '../../kit/spec.ts'
import type { JobBytes } from '../job-bytes.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'
import { readSubmitBody } from '../submit-body.ts'

export interface PostJobsDeps {
  readonly kit: OperationKit
  readonly submit: Submit
  readonly check: SpecCheck
  readonly jobBytes: JobBytes
  readonly maxBodyBytes: number
}

export function postJobs(app: FastifyInstance, deps: PostJobsDeps): void {
  const { kit, submit, check, jobBytes, maxBodyBytes } = deps
  app.post(`${API_PATH}/jobs`, async (request, reply) => {
    const context = kit.contextOf(request)
    const idempotencyKey = readIdempotencyKey(request.raw.headersDistinct['idempotency-key'])
    const body = await readJsonBody(request, { maxBytes: maxBodyBytes })
    const fields = readSubmitBody(body, check)
    const { accountId, scopes, pool } = context
    const job = await submit({ accountId, scopes, pool, ...fields, idempotencyKey })
    return sendJson(reply, 201, jobBytes(job, context))
  })
}
