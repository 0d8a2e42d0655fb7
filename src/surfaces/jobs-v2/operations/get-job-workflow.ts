/** The executed graph. Its text goes out as it was stored: a number must not change on its way through us. */
import type { FastifyInstance } from 'fastify'
import { jobIdOf } from '../job-id.ts'
import type { OperationKit } from '../jobs-operation.ts'
import type { ReachableJobs } from '../reachable-jobs.ts'
import { sendJson } from '../send-json.ts'
import { API_PATH } from '../views/links.ts'

export interface GetJobWorkflowDeps {
  readonly kit: OperationKit
  readonly findWorkflow: ReachableJobs['workflow']
}

export function getJobWorkflow(app: FastifyInstance, { kit, findWorkflow }: GetJobWorkflowDeps): void {
  app.get(`${API_PATH}/jobs/:id/workflow`, async (request, reply) => {
    const text = await findWorkflow(kit.contextOf(request), jobIdOf(request))
    return sendJson(reply, 200, `{"workflow":${text},"format":"api"}`)
  })
}
