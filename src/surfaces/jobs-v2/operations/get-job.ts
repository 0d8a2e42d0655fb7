/**
 * The polling workhorse, answered from our own store, whatever state the engine is in. A job in memory is answered in front
 * of the framework (hot-path.ts) with the very same bytes; everything else, refusals included, comes here.
 */
import type { FastifyInstance } from 'fastify'
import type { Turns } from '../../../../lib/turns.ts'
import { jobIdOf } from '../job-id.ts'
import type { OperationKit } from '../jobs-operation.ts'
import type { ReachableJobs } from '../reachable-jobs.ts'
import { sendJson } from '../send-json.ts'
import type { JobBytes } from '../views/job-bytes.ts'
import { API_PATH } from '../views/links.ts'

export interface GetJobDeps {
  readonly kit: OperationKit
  readonly find: ReachableJobs['find']
  readonly jobBytes: JobBytes
  readonly turns: Turns
}

export const JOB_ROUTE = `${API_PATH}/jobs/:id`

export function getJob(app: FastifyInstance, { kit, find, jobBytes, turns }: GetJobDeps): void {
  app.get(JOB_ROUTE, async (request, reply) => {
    const context = kit.contextOf(request)
    const job = await find(context, jobIdOf(request))
    return sendJson(reply, 200, await turns.run(jobBytes.inSteps(job, context)))
  })
}
