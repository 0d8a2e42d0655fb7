/** Cancels prompts by id, waiting or running, or empties what waits. Ids that are unknown, over or somebody else's are not. */

import { cancelAll } from '../jobs/cancel-prompts.ts'
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'
import { readLooseObject } from '../lenient-body.ts'
import { readIds, readSwitch } from '../read-ids.ts'

export function postQueue(api: Api, deps: OperationDeps): void {
  const { jobs, accountOf, limits } = deps
  api.both('POST', '/queue', async (request, reply) => {
    const body = await readLooseObject(request, limits.maxBodyBytes)
    const accountId = accountOf(request)
    const isClear = readSwitch(body, 'clear')
    const named = readIds(body, 'delete')
    const pending = isClear ? (await jobs.records.live(accountId)).filter(({ job }) => job.status === 'queued') : []
    const ids = [...new Set([...named, ...pending.map(({ job }) => job.id)])]
    const deleted = await cancelAll(ids, { accountId, cancel: jobs.cancel, find: jobs.reader.find })
    return sendJson(reply, { deleted, cleared: isClear })
  })
}
