/** The account's jobs as a list, filtered, sorted and cut into pages. */

import { mapSteps } from '../../../../lib/turns.ts'
import { readJobsQuery } from '../jobs/job-list-query.ts'
import { toJobEntry } from '../jobs/job-list-view.ts'
import { type Api, type OperationDeps, queryOf, sendJson, sendJsonText } from '../legacy-operation.ts'

export function listJobs(api: Api, deps: OperationDeps): void {
  api.api('GET', '/jobs', async (request, reply) => {
    const { filter, problem, limit } = readJobsQuery(queryOf(request))
    if (filter === null) return sendJson(reply, { error: problem }, 400)
    const { jobs, total } = await deps.jobs.records.select(deps.accountOf(request), filter)
    const { offset } = filter
    const entries = (await deps.turns.run(mapSteps(jobs, (one) => toJobEntry(one, deps)))).join(',')
    const pagination = { offset, limit, total, has_more: offset + jobs.length < total }
    return sendJsonText(reply, `{"jobs":[${entries}],"pagination":${JSON.stringify(pagination)}}`)
  })
}
