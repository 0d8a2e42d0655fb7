/** The hosted v1's form of the history: a list with the newest first, and one entry with an object for its prompt. */

import { mapSteps } from '../../../../lib/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { readHistoryRange } from '../history-range.ts'
import { type Api, type OperationDeps, paramOf, queryOf, sendJsonText } from '../operation.ts'
import { toHistoryV2Entry } from '../prompt-view.ts'

export function getHistoryV2(api: Api, deps: OperationDeps): void {
  const { jobs, accountOf } = deps
  api.both('GET', '/history_v2', async (request, reply) => {
    const records = await jobs.records.history(accountOf(request), readHistoryRange(queryOf(request)))
    const write = (one: RecordedJob) => toHistoryV2Entry(one, deps, { isListed: true })
    const entries = await deps.turns.run(mapSteps(records.toReversed(), write))
    return sendJsonText(reply, `{"history":[${entries.join(',')}]}`)
  })
  api.both('GET', '/history_v2/:id', async (request, reply) => {
    const found = await jobs.records.historyOf(accountOf(request), paramOf(request, 'id'))
    if (found === null) throw new ServiceError('not_found', 'there is no finished prompt with this id')
    const entry = toHistoryV2Entry(found, deps, { isListed: false })
    return sendJsonText(reply, `{${JSON.stringify(found.job.id)}:${entry}}`)
  })
}
