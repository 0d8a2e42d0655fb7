/** The account's queue: what runs and what waits, taken out by id or emptied, the run that is stopped, and the history. */
import { mapSteps, type Work } from '../../../../lib/waiting/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { CancelJob } from '../../../domain/jobs/end/cancel-job.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { JobReader } from '../../../domain/jobs/read/job-reader.ts'
import type { HistoryRange, RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import { historyEntrySteps, type PromptViewDeps, toHistoryV2Entry, toQueueEntry } from '../jobs/prompt-view.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  queryOf,
  readIds,
  readInteger,
  readLooseObject,
  readSwitch,
  sendJson,
  sendJsonText,
} from '../legacy-operation.ts'

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

// What has run, in ComfyUI's form and in the hosted v1's, and how entries are taken out.

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

/** Cancels several jobs and returns those that it canceled, as they are afterwards. Unknown ids, ended jobs and jobs of others are passed over. */
interface CancelDeps {
  readonly accountId: string
  readonly cancel: CancelJob
  readonly find: JobReader['find']
}

export async function cancelAll(ids: readonly string[], { accountId, cancel, find }: CancelDeps): Promise<Job[]> {
  const canceled: Job[] = []
  for (const id of ids) {
    try {
      const before = await find(accountId, id)
      if (isTerminal(before.status)) continue
      canceled.push(await cancel(accountId, id))
    } catch (error) {
      if (!(error instanceof ServiceError && error.refusal === 'not_found')) throw error
    }
  }
  return canceled
}
