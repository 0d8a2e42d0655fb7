/** The account's queue as it stands: what runs, and what waits in the order in which it will run. */
import { mapSteps } from '../../../../lib/turns.ts'
import { toQueueEntry } from '../jobs/prompt-view.ts'
import { type Api, type OperationDeps, sendJsonText } from '../legacy-operation.ts'

export function getQueue(api: Api, deps: OperationDeps): void {
  api.both('GET', '/queue', async (request, reply) => {
    const records = await deps.jobs.records.live(deps.accountOf(request))
    const list = async (isPending: boolean) => {
      const listed = records.filter(({ job }) => (job.status === 'queued') === isPending)
      return (await deps.turns.run(mapSteps(listed, (one) => toQueueEntry(one, deps)))).join(',')
    }
    return sendJsonText(reply, `{"queue_running":[${await list(false)}],"queue_pending":[${await list(true)}]}`)
  })
}
