/** What the run printed, or 204 when there is nothing. */
import type { FastifyInstance } from 'fastify'
import { jobIdOf } from '../job-id.ts'
import type { OperationKit } from '../jobs-operation.ts'
import type { ReachableJobs } from '../reachable-jobs.ts'
import { sendJson } from '../send-json.ts'
import { API_PATH } from '../views/links.ts'

export interface GetJobLogsDeps {
  readonly kit: OperationKit
  readonly findLog: ReachableJobs['log']
}

export function getJobLogs(app: FastifyInstance, { kit, findLog }: GetJobLogsDeps): void {
  app.get(`${API_PATH}/jobs/:id/logs`, async (request, reply) => {
    const log = await findLog(kit.contextOf(request), jobIdOf(request))
    if (log === null) return reply.code(204).send()
    const { text, truncated, capturedAt, complete } = log
    return sendJson(reply, 200, JSON.stringify({ text, truncated, captured_at: capturedAt.toISOString(), complete }))
  })
}
