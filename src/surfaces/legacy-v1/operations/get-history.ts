/** What has run, by id, in the order in which it ended. */
import type { FastifyRequest } from 'fastify'
import type { RecordedJob } from '../../../domain/jobs/run-records.ts'
import { readHistoryRange } from '../history-range.ts'
import { type Api, type OperationDeps, paramOf, queryOf, sendJsonText } from '../operation.ts'
import { toHistoryEntry } from '../prompt-view.ts'

export function getHistory(api: Api, deps: OperationDeps): void {
  const { jobs, accountOf } = deps
  const toObject = (records: readonly RecordedJob[]) =>
    `{${records.map((one) => `${JSON.stringify(one.job.id)}:${toHistoryEntry(one, deps)}`).join(',')}}`

  api.both('GET', '/history', async (request, reply) => {
    const range = readHistoryRange(queryOf(request))
    return sendJsonText(reply, toObject(await jobs.records.history(accountOf(request), range)))
  })
  api.both('GET', '/history/:id', async (request: FastifyRequest, reply) => {
    const found = await jobs.records.historyOf(accountOf(request), paramOf(request, 'id'))
    return sendJsonText(reply, toObject(found === null ? [] : [found]))
  })
}
