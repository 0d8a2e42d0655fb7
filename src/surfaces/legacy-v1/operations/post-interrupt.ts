/** Stops a run: the named one if it runs, or the one of the account that has run longest. Nothing that waits is touched. */

import { ServiceError } from '../../../domain/errors.ts'
import { cancelAll } from '../jobs/cancel-prompts.ts'
import { type Api, type OperationDeps, sendJson } from '../legacy-operation.ts'
import { readLooseObject } from '../lenient-body.ts'

export function postInterrupt(api: Api, { jobs, accountOf, limits }: OperationDeps): void {
  api.both('POST', '/interrupt', async (request, reply) => {
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
