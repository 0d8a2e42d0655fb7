/** Cancels a job. Clients send no body and no Content-Type; whatever body comes is ignored. */
import type { FastifyInstance } from 'fastify'
import { jobIdOf } from '../job-id.ts'
import type { OperationKit } from '../jobs-operation.ts'
import type { ReachableJobs } from '../reachable-jobs.ts'
import { sendJson } from '../send-json.ts'
import type { JobBytes } from '../views/job-bytes.ts'
import { API_PATH } from '../views/links.ts'

export interface CancelJobDeps {
  readonly kit: OperationKit
  readonly cancel: ReachableJobs['cancel']
  readonly jobBytes: JobBytes
}

export function cancelJob(app: FastifyInstance, { kit, cancel, jobBytes }: CancelJobDeps): void {
  app.post(`${API_PATH}/jobs/:id/cancel`, async (request, reply) => {
    const context = kit.contextOf(request)
    const job = await cancel(context, jobIdOf(request))
    return sendJson(reply, 200, jobBytes(job, context))
  })
}
