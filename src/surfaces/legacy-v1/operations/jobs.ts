/** The account's jobs, in the routes of the hosted v1: listed, shown, asked for their status and outputs, cancelled. */
import { isUuid } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { mapSteps } from '../../../../lib/waiting/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { JobFilter, RecordedJob } from '../../../domain/jobs/read/recorded-jobs.ts'
import type { RunRecord } from '../../../domain/jobs/run/record/run-record.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import { serviceAddressOf } from '../../kit/guards/routes.ts'
import { summarize, toOutputs } from '../jobs/node-output.ts'
import {
  failureOf,
  GROUP_WORDS,
  type GroupWord,
  type PromptViewDeps,
  statesOfGroup,
  toExecutionError,
  toGroupWord,
  toHistoryStatus,
  toPromptParts,
  toStatusWord,
} from '../jobs/prompt-view.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  queryOf,
  readInteger,
  readLooseJson,
  sendJson,
  sendJsonText,
} from '../legacy-operation.ts'
import { cancelAll } from './queue.ts'

/** Filtered, sorted and cut into pages. */
export function listJobs(api: Api, deps: OperationDeps): void {
  api.apiOnly('GET', '/jobs', 'jobs:read', async (request, reply) => {
    const { filter, problem } = readJobListQuery(queryOf(request))
    if (filter === null) return sendJson(reply, { error: problem }, 400)
    const { jobs, total } = await deps.jobs.records.select(deps.accountOf(request), filter)
    const { offset, limit } = filter
    const entries = (await deps.turns.run(mapSteps(jobs, (one) => toJobEntry(one, deps)))).join(',')
    const pagination = { offset, limit, total, has_more: offset + jobs.length < total }
    return sendJsonText(reply, `{"jobs":[${entries}],"pagination":${JSON.stringify(pagination)}}`)
  })
}

export function getJob(api: Api, deps: OperationDeps): void {
  api.apiOnly('GET', '/jobs/:id', 'jobs:read', async (request, reply) => {
    const found = await deps.jobs.records.find(deps.accountOf(request), paramOf(request, 'id'))
    if (found === null) return sendJson(reply, { error: 'Job not found' }, 404)
    return sendJsonText(reply, toJobDetail(found, deps))
  })
}

/** The status of a job in one word. Clients poll until one of the five final words appears. */
export function getJobStatus(api: Api, { jobs, isAtLimit, accountOf, clock }: OperationDeps): void {
  api.both('GET', '/job/:id/status', 'jobs:read', async (request, reply) => {
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

const MAX_ASSETS = 500
const DEFAULT_ASSETS = 20

/** The files that a job made, and which output of which node each of them is. */
export function getJobAssets(api: Api, deps: OperationDeps): void {
  api.apiOnly('GET', '/jobs/:id/assets', 'jobs:read', async (request, reply) => {
    const query = queryOf(request)
    const limit = Math.min(MAX_ASSETS, readInteger(query, 'limit') ?? DEFAULT_ASSETS)
    if (limit < 1) throw new ServiceError('invalid_request', 'limit must be a positive integer')
    const offset = Math.max(0, readInteger(query, 'offset') ?? 0)
    const found = await deps.jobs.records.find(deps.accountOf(request), paramOf(request, 'id'))
    if (found === null) return sendJson(reply, { error: 'Job not found' }, 404)
    const { job, run } = found
    const { origin, mountPrefix } = serviceAddressOf(request)
    const positions = outputPositions(run)
    const assets = job.outputs.slice(offset, offset + limit).map((output) => {
      const named = new URLSearchParams({ filename: output.name, type: 'output' })
      return {
        id: output.assetId,
        name: output.name,
        hash: `blake3:${output.hash}`,
        size: output.sizeBytes,
        mime_type: output.contentType,
        preview_url: `${origin}${mountPrefix}/api/view?${named}`,
        created_at: (job.completedAt ?? job.startedAt ?? job.createdAt).toISOString(),
        node_id: output.nodeId,
        ...(positions.get(`${output.nodeId}/${output.name}`) ?? { output_key: null, output_index: null }),
      }
    })
    const total = job.outputs.length
    const pagination = { offset, limit, total, has_more: offset + assets.length < total }
    return sendJson(reply, { job_id: job.id, assets, pagination })
  })
}

interface OutputPosition {
  readonly output_key: string
  readonly output_index: number
}

/** By node and file name, `9/x.png`. */
function outputPositions(run: RunRecord | null): ReadonlyMap<string, OutputPosition> {
  const positions = new Map<string, OutputPosition>()
  for (const { displayNodeId, output } of run?.nodes ?? []) {
    for (const [key, items] of Object.entries(output)) {
      for (const [index, item] of items.entries()) {
        if (typeof item !== 'object' || item === null || !('filename' in item)) continue
        positions.set(`${displayNodeId}/${String(item.filename)}`, { output_key: key, output_index: index })
      }
    }
  }
  return positions
}

const MAX_IDS = 100

/** Cancels one job or several. Unknown ids, ended jobs and jobs of other accounts are no error: nothing was cancelled. */
export function cancelJobs(api: Api, { jobs, accountOf, limits }: OperationDeps): void {
  const cancel = async (accountId: string, ids: readonly string[]) =>
    (await cancelAll(ids, { accountId, cancel: jobs.cancel, find: jobs.reader.find })).length > 0

  api.apiOnly('POST', '/jobs/:id/cancel', 'jobs:write', async (request, reply) => {
    const cancelled = await cancel(accountOf(request), [paramOf(request, 'id')])
    return sendJson(reply, { cancelled })
  })

  api.apiOnly('POST', '/jobs/cancel', 'jobs:write', async (request, reply) => {
    const { ids, problem } = readJobIds(await readBody())
    if (problem !== null) return sendJson(reply, problem, 400)
    return sendJson(reply, { cancelled: await cancel(accountOf(request), ids) })

    async function readBody(): Promise<JsonValue | undefined> {
      try {
        return await readLooseJson(request, limits.maxBodyBytes)
      } catch (error) {
        if (error instanceof ServiceError && error.refusal === 'invalid_request') return undefined
        throw error
      }
    }
  })
}

type JobIds =
  | { readonly ids: readonly string[]; readonly problem: null }
  | { readonly ids: null; readonly problem: object }

function readJobIds(body: JsonValue | undefined): JobIds {
  if (body === undefined) return refuse('Request body must be valid JSON')
  const list = isJsonObject(body) ? body['job_ids'] : undefined
  if (!Array.isArray(list)) return refuse('job_ids must be a list')
  if (list.length === 0 || list.length > MAX_IDS) return refuse(`job_ids must hold 1 to ${MAX_IDS} ids`)
  const invalid = list.filter((id) => typeof id !== 'string' || !isUuid(id))
  if (invalid.length > 0) {
    const invalid_ids = invalid.map((id) => (typeof id === 'string' ? id.slice(0, 64) : String(typeof id)))
    return { ids: null, problem: { error: 'job_ids contains invalid id(s)', invalid_ids } }
  }
  return { ids: list as string[], problem: null }
}

function refuse(error: string): JobIds {
  return { ids: null, problem: { error } }
}

/** The query of the job list, in both spellings that are in use. Its refusals are ComfyUI's own sentences. */
type JobListQuery =
  | { readonly filter: JobFilter; readonly problem: null }
  | { readonly filter: null; readonly problem: string }

const SORTS: Readonly<Record<string, JobFilter['sortBy']>> = {
  created_at: 'created_at',
  create_time: 'created_at',
  execution_duration: 'execution_duration',
  execution_time: 'execution_duration',
}
const OUTPUT_TYPES = ['image', 'video', 'audio', '3d'] as const
// Also what counts when the query names no limit.
const MAX_LIMIT = 1000
const INTEGER = /^\s*[+-]?\d{1,9}\s*$/

class Problem extends Error {}

function readJobListQuery(query: URLSearchParams): JobListQuery {
  try {
    const limit = readLimit(query)
    const filter: JobFilter = {
      statuses: readStatuses(query.get('status')),
      workflowId: query.get('workflow_id') || null,
      outputType: readOutputType(query.get('output_type')),
      sortBy: readSort(query.get('sort_by')),
      order: readOrder(query.get('sort_order')),
      limit: Math.min(limit ?? MAX_LIMIT, MAX_LIMIT),
      offset: Math.max(0, readField(query.get('offset'), 'offset') ?? 0),
    }
    return { filter, problem: null }
  } catch (error) {
    if (error instanceof Problem) return { filter: null, problem: error.message }
    throw error
  }
}

function readStatuses(text: string | null): JobFilter['statuses'] {
  if (text === null || text.trim() === '') return null
  const words = text
    .split(',')
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== '')
  const unknown = words.filter((word) => !GROUP_WORDS.includes(word as GroupWord))
  if (unknown.length > 0) {
    const shown = unknown.slice(0, 10).join(', ').slice(0, 200)
    throw new Problem(`Invalid status value(s): ${shown}. Valid values: ${GROUP_WORDS.join(', ')}`)
  }
  return words.flatMap((word) => statesOfGroup(word as GroupWord))
}

function readSort(text: string | null): JobFilter['sortBy'] {
  const key = text?.trim().toLowerCase() || 'created_at'
  if (!Object.hasOwn(SORTS, key)) throw new Problem("sort_by must be 'created_at' or 'execution_duration'")
  return SORTS[key]
}

function readOrder(text: string | null): JobFilter['order'] {
  const order = text?.trim().toLowerCase() || 'desc'
  if (order !== 'asc' && order !== 'desc') throw new Problem("sort_order must be 'asc' or 'desc'")
  return order
}

function readOutputType(text: string | null): JobFilter['outputType'] {
  if (text === null || text === '') return null
  const type = OUTPUT_TYPES.find((one) => one === text)
  if (type === undefined) throw new Problem(`output_type must be one of ${OUTPUT_TYPES.join(', ')}`)
  return type
}

function readLimit(query: URLSearchParams): number | null {
  const limit = readField(query.get('limit'), 'limit')
  if (limit !== null && limit <= 0) throw new Problem('limit must be a positive integer')
  return limit
}

function readField(text: string | null, name: string): number | null {
  if (text === null || text === '') return null
  if (!INTEGER.test(text)) throw new Problem(`${name} must be an integer`)
  return Number(text)
}

// A job in the lists under `/api/jobs`. Members that would be null are left out, as clients expect.

/** As JSON text, so that the number keeps its digits. */
function toJobEntry(record: RecordedJob, deps: PromptViewDeps): string {
  return `{${toMembers(record, deps)}}`
}

/** A job that has ended is shown in full; one that waits or runs only as in a list. */
function toJobDetail(record: RecordedJob, deps: PromptViewDeps): string {
  if (!isTerminal(record.job.status)) return toJobEntry(record, deps)
  const { workflow, extraData } = toPromptParts(record, deps)
  const told = JSON.stringify({ outputs: toOutputs(record.run), execution_status: toHistoryStatus(record) })
  return `{${toMembers(record, deps)},${told.slice(1, -1)},"workflow":{"prompt":${workflow},"extra_data":${extraData}}}`
}

function toMembers(record: RecordedJob, deps: PromptViewDeps): string {
  const { job, run, submission } = record
  const { number } = toPromptParts(record, deps)
  const { preview_output, ...counts } = summarize(run)
  const executionError = toExecutionError(record)
  const startedAtMs = run?.startedAtMs ?? job.startedAt?.getTime()
  const hasRun = isTerminal(job.status) && startedAtMs !== undefined
  const members = {
    create_time: job.createdAt.getTime(),
    ...(hasRun && { execution_start_time: startedAtMs, execution_end_time: job.completedAt?.getTime() }),
    ...(executionError !== null && { execution_error: executionError }),
    ...counts,
    ...(preview_output !== null && { preview_output }),
    ...(submission?.workflowId != null && { workflow_id: submission.workflowId }),
  }
  const head = `"id":${JSON.stringify(job.id)},"status":"${toGroupWord(job)}","priority":${number}`
  return `${head},${JSON.stringify(members).slice(1, -1)}`
}
