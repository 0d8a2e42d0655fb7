/** A page of the account's jobs, newest first; every item is a whole job. */
import type { FastifyInstance } from 'fastify'
import type { Job } from '../../../domain/jobs/job.ts'
import type { ListJobs } from '../../../domain/jobs/list.ts'
import type { Turns, Work } from '../../../lib/turns.ts'
import { encodeCursor } from '../../kit/cursor.ts'
import type { JobBytes } from '../job-bytes.ts'
import { API_PATH } from '../links.ts'
import { readListQuery } from '../list-query.ts'
import type { OperationKit } from '../operation.ts'
import { sendJson } from '../send-json.ts'

export interface ListJobsDeps {
  readonly kit: OperationKit
  readonly list: ListJobs
  readonly jobBytes: JobBytes
  readonly turns: Turns
}

const COMMA = Buffer.from(',')

export function listJobs(app: FastifyInstance, { kit, list, jobBytes, turns }: ListJobsDeps): void {
  app.get(`${API_PATH}/jobs`, async (request, reply) => {
    const context = kit.contextOf(request)
    const query = readListQuery(request.raw.url ?? '', context.pool)
    const { jobs, next } = await list(context.accountId, query.request)
    const items = await turns.run(writeSteps(jobs, (job) => jobBytes.inSteps(job, context)))
    // Absent rather than null on the last page: clients walk on as long as there is one.
    const cursor = next === null ? '' : `"next_cursor":${JSON.stringify(encodeCursor(next, query.filters))},`
    const end = Buffer.from(`],${cursor}"has_more":${next !== null}}`)
    return sendJson(reply, 200, Buffer.concat([Buffer.from('{"jobs":['), ...items, end]))
  })
}

function* writeSteps(jobs: readonly Job[], write: (job: Job) => Work<Buffer>): Work<Buffer[]> {
  const pieces: Buffer[] = []
  for (const job of jobs) {
    if (pieces.length > 0) pieces.push(COMMA)
    pieces.push(yield* write(job))
    yield
  }
  return pieces
}
