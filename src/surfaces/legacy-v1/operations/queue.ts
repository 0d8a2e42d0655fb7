/** The account's queue: what runs and what waits, taken out by id or emptied, and the run that is stopped. */
import { mapSteps } from '../../../../lib/waiting/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { cancelAll } from '../jobs/cancel-prompts.ts'
import { toQueueEntry } from '../jobs/prompt-view.ts'
import { type Api, type OperationDeps, sendJson, sendJsonText } from '../legacy-operation.ts'
import { readIds, readLooseObject, readSwitch } from '../lenient-body.ts'

/** What runs, and what waits in the order in which it will run. */
export function getQueue(api: Api, deps: OperationDeps): void {
  api.both('GET', '/queue', 'jobs:read', async (request, reply) => {
    const records = await deps.jobs.records.live(deps.accountOf(request))
    const list = async (isPending: boolean) => {
      const listed = records.filter(({ job }) => (job.status === 'queued') === isPending)
      return (await deps.turns.run(mapSteps(listed, (one) => toQueueEntry(one, deps)))).join(',')
    }
    return sendJsonText(reply, `{"queue_running":[${await list(false)}],"queue_pending":[${await list(true)}]}`)
  })
}

/**
 * Cancels the named prompts, waiting or running, and on `clear` everything that waits. Other ids are passed over. What had not begun
 * leaves the lists of this surface; its job is still found by its id.
 */
export function postQueue(api: Api, { jobs, accountOf, limits }: OperationDeps): void {
  api.both('POST', '/queue', 'jobs:write', async (request, reply) => {
    const body = await readLooseObject(request, limits.maxBodyBytes)
    const accountId = accountOf(request)
    const isClear = readSwitch(body, 'clear')
    const named = readIds(body, 'delete')
    const pending = isClear ? (await jobs.records.live(accountId)).filter(({ job }) => job.status === 'queued') : []
    const ids = [...new Set([...named, ...pending.map(({ job }) => job.id)])]
    const canceled = await cancelAll(ids, { accountId, cancel: jobs.cancel, find: jobs.reader.find })
    // ComfyUI keeps nothing of a prompt that was taken out of its queue, and clients show a cancelled job as a failed one.
    const neverRan = canceled.filter(({ status, startedAt }) => status === 'canceled' && startedAt === null)
    await jobs.records.forget(
      accountId,
      neverRan.map(({ id }) => id),
    )
    return sendJson(reply, { deleted: canceled.map(({ id }) => id), cleared: isClear })
  })
}

/** Stops the named run, or the longest-running one of the account. A prompt that waits is left alone. */
export function postInterrupt(api: Api, { jobs, accountOf, limits }: OperationDeps): void {
  api.both('POST', '/interrupt', 'jobs:write', async (request, reply) => {
    const body = await readLooseObject(request, limits.maxBodyBytes)
    const wanted = body['prompt_id'] ?? null
    if (wanted !== null && typeof wanted !== 'string')
      throw new ServiceError('invalid_request', 'prompt_id must be the id of a prompt')
    const accountId = accountOf(request)
    const running = (await jobs.records.live(accountId)).filter(({ job }) => job.status !== 'queued')
    const chosen = wanted === null ? running.slice(0, 1) : running.filter(({ job }) => job.id === wanted)
    const ids = chosen.map(({ job }) => job.id)
    await cancelAll(ids, { accountId, cancel: jobs.cancel, find: jobs.reader.find })
    return sendJson(reply, {})
  })
}
