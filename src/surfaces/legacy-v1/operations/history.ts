/** What has run, in ComfyUI's form and in the hosted v1's, and how entries are taken out. */
import { mapSteps, type Work } from '../../../../lib/waiting/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { HistoryRange, RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { historyEntrySteps, type PromptViewDeps, toHistoryV2Entry } from '../jobs/prompt-view.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  queryOf,
  readInteger,
  sendJson,
  sendJsonText,
} from '../legacy-operation.ts'
import { readIds, readLooseObject, readSwitch } from '../lenient-body.ts'

/** An object by prompt id, in the order in which the runs ended. */
export function getHistory(api: Api, deps: OperationDeps): void {
  const { jobs, accountOf, turns } = deps
  const toObject = (records: readonly RecordedJob[]) => turns.run(objectSteps(records, deps))

  api.both('GET', '/history', 'jobs:read', async (request, reply) => {
    const range = readHistoryRange(queryOf(request))
    return sendJsonText(reply, await toObject(await jobs.records.history(accountOf(request), range)))
  })
  api.both('GET', '/history/:id', 'jobs:read', async (request, reply) => {
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

/** The hosted v1's form: a list with the newest first, and one entry with an object for its prompt. */
export function getHistoryV2(api: Api, deps: OperationDeps): void {
  const { jobs, accountOf } = deps
  api.both('GET', '/history_v2', 'jobs:read', async (request, reply) => {
    const records = await jobs.records.history(accountOf(request), readHistoryRange(queryOf(request)))
    const write = (one: RecordedJob) => toHistoryV2Entry(one, deps, { isListed: true })
    const entries = await deps.turns.run(mapSteps(records.toReversed(), write))
    return sendJsonText(reply, `{"history":[${entries.join(',')}]}`)
  })
  api.both('GET', '/history_v2/:id', 'jobs:read', async (request, reply) => {
    const found = await jobs.records.historyOf(accountOf(request), paramOf(request, 'id'))
    if (found === null) throw new ServiceError('not_found', 'there is no finished prompt with this id')
    const entry = toHistoryV2Entry(found, deps, { isListed: false })
    return sendJsonText(reply, `{${JSON.stringify(found.job.id)}:${entry}}`)
  })
}

/** Takes entries out of the history. The jobs themselves stay, with their outputs, until their retention ends. */
export function postHistory(api: Api, { jobs, accountOf, limits }: OperationDeps): void {
  api.both('POST', '/history', 'jobs:write', async (request, reply) => {
    const body = await readLooseObject(request, limits.maxBodyBytes)
    const accountId = accountOf(request)
    const isClear = readSwitch(body, 'clear')
    const ids = readIds(body, 'delete')
    if (isClear) await jobs.records.forget(accountId, null)
    if (ids.length > 0) await jobs.records.forget(accountId, ids)
    return sendJson(reply, {})
  })
}

// As many as ComfyUI keeps.
const MAX_ITEMS = 10_000

/** A negative value counts as left out, like an empty one. */
function readHistoryRange(query: URLSearchParams): HistoryRange {
  const maxItems = readInteger(query, 'max_items')
  const offset = readInteger(query, 'offset')
  return {
    maxItems: maxItems === null || maxItems < 0 ? MAX_ITEMS : Math.min(maxItems, MAX_ITEMS),
    offset: offset === null || offset < 0 ? null : offset,
  }
}
