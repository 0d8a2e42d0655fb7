/** The account's jobs, in the routes of the hosted v1: listed, shown, asked for their status and outputs, cancelled. */
import { isUuid } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { mapSteps } from '../../../../lib/waiting/turns.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { RunRecord } from '../../../domain/jobs/run/record/run-record.ts'
import { serviceAddressOf } from '../../kit/guards/guard-hooks.ts'
import { cancelAll } from '../jobs/cancel-prompts.ts'
import { readJobListQuery } from '../jobs/job-list-query.ts'
import { toJobDetail, toJobEntry } from '../jobs/job-list-view.ts'
import { failureOf } from '../jobs/prompt-view.ts'
import { toStatusWord } from '../jobs/status-words.ts'
import {
  type Api,
  type OperationDeps,
  paramOf,
  queryOf,
  readInteger,
  sendJson,
  sendJsonText,
} from '../legacy-operation.ts'
import { readLooseJson } from '../lenient-body.ts'

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
