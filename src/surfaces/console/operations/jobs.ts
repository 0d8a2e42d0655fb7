/** Lists of jobs in short. */
import type { FastifyInstance } from 'fastify'
import { needs } from '../../kit/guards/rights.ts'
import { readFields } from '../../kit/jobs/job-filters.ts'
import { createReadPage } from '../../kit/jobs/job-pages.ts'
import { toCompactView, toSummaryView } from '../../kit/jobs/summary-view.ts'
import { sendJson } from '../../kit/send-json.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'

export function listJobs(app: FastifyInstance, { callerOf, console: parts, clock }: ConsoleDeps): void {
  const readPage = createReadPage({ ...parts, clock })
  app.get(`${CONSOLE_API}/jobs`, needs('jobs:read'), async (request, reply) => {
    const { accountId } = callerOf(request)
    const fields = readFields(request.raw.url ?? '')
    const toView = fields.get('compact') === '1' ? toCompactView : toSummaryView
    return sendJson(reply, 200, await readPage(accountId, fields, { toView, others: ['compact'] }))
  })
}
