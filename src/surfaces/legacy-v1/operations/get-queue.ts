/** The account's queue as it stands: what runs, and what waits in the order in which it will run. */
import { type Api, type OperationDeps, sendJsonText } from '../operation.ts'
import { toQueueEntry } from '../prompt-view.ts'

export function getQueue(api: Api, deps: OperationDeps): void {
  api.both('GET', '/queue', async (request, reply) => {
    const records = await deps.jobs.records.live(deps.accountOf(request))
    const list = (isPending: boolean) =>
      records.flatMap((one) => ((one.job.status === 'queued') === isPending ? [toQueueEntry(one, deps)] : [])).join(',')
    return sendJsonText(reply, `{"queue_running":[${list(false)}],"queue_pending":[${list(true)}]}`)
  })
}
