/** One job of the account, waiting, running or ended. */

import { toJobDetail } from '../jobs/job-list-view.ts'
import { type Api, type OperationDeps, paramOf, sendJson, sendJsonText } from '../legacy-operation.ts'

export function getJob(api: Api, deps: OperationDeps): void {
  api.api('GET', '/jobs/:id', async (request, reply) => {
    const found = await deps.jobs.records.find(deps.accountOf(request), paramOf(request, 'id'))
    if (found === null) return sendJson(reply, { error: 'Job not found' }, 404)
    return sendJsonText(reply, toJobDetail(found, deps))
  })
}
