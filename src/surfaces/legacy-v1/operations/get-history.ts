/** What has run, by id, in the order in which it ended. */
import type { FastifyRequest } from 'fastify'
import type { Work } from '../../../../lib/turns.ts'
import type { RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { readHistoryRange } from '../history-range.ts'
import { type Api, type OperationDeps, paramOf, queryOf, sendJsonText } from '../operation.ts'
import { historyEntrySteps, type PromptViewDeps } from '../prompt-view.ts'

export function getHistory(api: Api, deps: OperationDeps): void {
  const { jobs, accountOf, turns } = deps
  const toObject = (records: readonly RecordedJob[]) => turns.run(objectSteps(records, deps))

  api.both('GET', '/history', async (request, reply) => {
    const range = readHistoryRange(queryOf(request))
    return sendJsonText(reply, await toObject(await jobs.records.history(accountOf(request), range)))
  })
  api.both('GET', '/history/:id', async (request: FastifyRequest, reply) => {
    const found = await jobs.records.historyOf(accountOf(request), paramOf(request, 'id'))
    return sendJsonText(reply, await toObject(found === null ? [] : [found]))
  })
}

function* objectSteps(records: readonly RecordedJob[], deps: PromptViewDeps): Work<string> {
  let members = ''
  for (const record of records) {
    const entry = yield* historyEntrySteps(record, deps)
    members += `${members === '' ? '' : ','}${JSON.stringify(record.job.id)}:${entry}`
    yield
  }
  return `{${members}}`
}
