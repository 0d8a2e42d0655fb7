/** The status of a job in one word, as the hosted v1 says it. Clients poll until one of the five final words appears. */

import { failureOf } from '../jobs/prompt-view.ts'
import { toStatusWord } from '../jobs/status-words.ts'
import { type Api, type OperationDeps, paramOf, sendJson } from '../legacy-operation.ts'

export function getJobStatus(api: Api, { jobs, isAtLimit, accountOf, clock }: OperationDeps): void {
  api.both('GET', '/job/:id/status', async (request, reply) => {
    const accountId = accountOf(request)
    const job = await jobs.reader.find(accountId, paramOf(request, 'id'))
    const facts = { now: clock.now(), isAtLimit: job.status === 'queued' && (await isAtLimit(accountId)) }
    const status = toStatusWord(job, facts)
    const changedAt = (job.completedAt ?? job.startedAt ?? job.createdAt).toISOString()
    return sendJson(reply, {
      id: job.id,
      status,
      created_at: job.createdAt.toISOString(),
      updated_at: changedAt,
      last_state_update: changedAt,
      assigned_inference: null,
      error_message: failureOf(job)?.message ?? null,
    })
  })
}
