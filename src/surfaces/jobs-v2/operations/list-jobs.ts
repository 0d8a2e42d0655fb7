/** A page of the account's jobs, newest first; every item is a whole job. */
import type { FastifyInstance } from 'fastify'
import type { Turns, Work } from '../../../../lib/turns.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { ListJobs } from '../../../domain/jobs/read/list-jobs.ts'
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
  readonly turns: Turns
}

const COMMA = Buffer.from(',')

export function listJobs(app: FastifyInstance, { kit, list, jobBytes, cursors, turns }: ListJobsDeps): void {
  app.get(`${API_PATH}/jobs`, async (request, reply) => {
    const context = kit.contextOf(request)
    const query = readListQuery(request.raw.url ?? '', context, cursors)
    const { jobs, next } = await list(context.accountId, query.request)
    const items = await turns.run(writeSteps(jobs, (job) => jobBytes.inSteps(job, context)))
    // Absent rather than null on the last page: clients walk on as long as there is one.
    const cursor = next === null ? '' : `"next_cursor":${JSON.stringify(cursors.encode(next, query.filters))},`
    const end = Buffer.from(`],"truncated":false,${cursor}"has_more":${next !== null}}`)
    return sendJson(reply, 200, Buffer.concat([Buffer.from('{"jobs":['), ...items, end]))
  })
}

function* writeSteps(jobs: readonly Job[], write: (job: Job) => Work<Buffer>): Work<Buffer[]> {
  const pieces: Buffer[] = []
  for (const job of jobs) {
    if (pieces.length > 0) pieces.push(COMMA)
    pieces.push((yield* write(job)).subarray(0, -1), toListFields(job))
    yield
  }
  return pieces
}

/** Names that clients know from lists of the hosted service, and the end of the job's own bytes, which other answers share. */
function toListFields({ createdAt, startedAt, completedAt, pool }: Job): Buffer {
  const more = {
    create_time: createdAt.toISOString(),
    update_time: (completedAt ?? startedAt ?? createdAt).toISOString(),
    deployment_id: pool === DEFAULT_POOL ? null : pool,
  }
  return Buffer.from(`,${JSON.stringify(more).slice(1)}`)
}
