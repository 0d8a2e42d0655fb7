/** A page of the account's jobs, newest first; every item is a whole job. */
import type { FastifyInstance } from 'fastify'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { ListJobs } from '../../../domain/jobs/list.ts'
import type { TimeCursors } from '../../kit/cursor.ts'
import type { JobBytes } from '../job-bytes.ts'
import { API_PATH } from '../links.ts'
import { readListQuery } from '../list-query.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'

export interface ListJobsDeps {
  readonly kit: OperationKit
  readonly list: ListJobs
  readonly jobBytes: JobBytes
  readonly cursors: TimeCursors
}

export function listJobs(app: FastifyInstance, { kit, list, jobBytes, cursors }: ListJobsDeps): void {
  app.get(`${API_PATH}/jobs`, async (request, reply) => {
    const context = kit.contextOf(request)
    const query = readListQuery(request.raw.url ?? '', context, cursors)
    const { jobs, next } = await list(context.accountId, query.request)
    const items = jobs.map((job) => withListFields(jobBytes(job, context).toString(), job)).join(',')
    // Absent rather than null on the last page: clients walk on as long as there is one.
    const cursor = next === null ? '' : `"next_cursor":${JSON.stringify(cursors.encode(next, query.filters))},`
    return sendJson(reply, 200, `{"jobs":[${items}],"truncated":false,${cursor}"has_more":${next !== null}}`)
  })
}

/** Names that clients know from lists of the hosted service. The bytes of the job itself are shared with other answers. */
function withListFields(text: string, { createdAt, startedAt, completedAt, pool }: Job): string {
  const more = {
    create_time: createdAt.toISOString(),
    update_time: (completedAt ?? startedAt ?? createdAt).toISOString(),
    deployment_id: pool === DEFAULT_POOL ? null : pool,
  }
  return `${text.slice(0, -1)},${JSON.stringify(more).slice(1)}`
}
