/** Cancels a job. Clients send no body and no Content-Type; whatever body comes is ignored. */
import type { FastifyInstance } from 'fastify'
import type { CancelJob } from '../../../domain/jobs/cancel.ts'
import type { JobBytes } from '../job-bytes.ts'
import { jobIdOf } from '../job-id.ts'
import { API_PATH } from '../links.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'

export interface CancelJobDeps {
  readonly kit: OperationKit
  readonly cancel: CancelJob
  readonly jobBytes: JobBytes
}

export function cancelJob(app: FastifyInstance, { kit, cancel, jobBytes }: CancelJobDeps): void {
  app.post(`${API_PATH}/jobs/:id/cancel`, async (request, reply) => {
    const context = kit.contextOf(request)
    const job = await cancel(context.accountId, jobIdOf(request))
    return sendJson(reply, 200, jobBytes(job, context))
  })
}
