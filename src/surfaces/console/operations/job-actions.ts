/** What can be done to jobs: cancel one, some or all that fit a filter, and run one again with changes. */
import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonObject, type JsonValue, parseLosslessJson } from '../../../../lib/json/lossless-json.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import { noSuchJob } from '../../../domain/jobs/read/job-reader.ts'
import { readMetadata } from '../../../domain/jobs/submit/job-metadata.ts'
import type { SummaryFilter, SummaryPage } from '../../../domain/jobs/summaries/summary-store.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { readJsonBody } from '../../kit/bodies/json-body.ts'
import { sendJson } from '../../kit/send-json.ts'
import { CONSOLE_API, type ConsoleDeps } from '../console-operation.ts'
import { readFilterBody } from '../job-filters.ts'
import { toSummaryView } from '../views/summary-view.ts'
import { findLayout, jobIdOf } from './job.ts'

const MAX_IDS = 1000
// In one request; whoever has more repeats it.
const MAX_CANCELED = 10_000
const PAGE = 100
// Pages may be short, or empty: a filter that hardly any job fits must not keep the store busy for as long as it likes.
const MAX_PAGES = 200
const AT_ONCE = 16
const MAX_BODY_BYTES = 1_048_576

interface CancelWish {
  /** null: by filter. */
  readonly ids: readonly string[] | null
  readonly filter: SummaryFilter | null
  readonly statuses: readonly JobStatus[]
  readonly isOnlyQueued: boolean
  readonly isDry: boolean
}

interface FoundJobs {
  readonly ids: readonly string[]
  /** Whether there may be more that fit. */
  readonly hasMore: boolean
}

/** `dry_run` tells how many it would be, so that a person can be asked first. */
export function cancelJobs(app: FastifyInstance, { callerOf, jobs, console: parts, clock }: ConsoleDeps): void {
  app.post(`${CONSOLE_API}/jobs/cancel`, async (request, reply) => {
    const { accountId } = callerOf(request)
    const wish = readWish(await readJsonBody(request, { maxBytes: MAX_BODY_BYTES }))
    const found = wish.filter === null ? await findByIds(accountId, wish) : await findByFilter(accountId, wish)
    const count = wish.isDry ? found.ids.length : await cancelAll(accountId, found.ids, wish.isOnlyQueued)
    return sendJson(reply, 200, { count, has_more: found.hasMore })
  })

  async function findByIds(accountId: string, { ids, statuses }: CancelWish): Promise<FoundJobs> {
    const found = await parts.summaries.findMany(accountId, ids ?? [], clock.now())
    return { ids: found.filter(({ status }) => statuses.includes(status)).map(({ id }) => id), hasMore: false }
  }

  async function findByFilter(accountId: string, { filter, statuses }: CancelWish): Promise<FoundJobs> {
    const asked = filter?.statuses == null ? statuses : statuses.filter((status) => filter.statuses?.includes(status))
    if (filter === null || asked.length === 0) return { ids: [], hasMore: false }
    const ids: string[] = []
    let after: SummaryPage['next'] = null
    for (let page = 0; page < MAX_PAGES && ids.length < MAX_CANCELED; page += 1) {
      const found: SummaryPage = await parts.summaries.search(accountId, {
        ...{ filter: { ...filter, statuses: asked }, order: 'newest', limit: PAGE, after, now: clock.now() },
      })
      ids.push(...found.summaries.map(({ id }) => id))
      after = found.next
      if (after === null) break
    }
    return { ids, hasMore: after !== null }
  }

  /** Returns how many were canceled. What became of a job since it was found decides, not what it was then. */
  async function cancelAll(accountId: string, ids: readonly string[], isOnlyQueued: boolean): Promise<number> {
    let count = 0
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.slice(at, at + AT_ONCE)
      const outcomes = await Promise.all(some.map((id) => cancelOne(accountId, id, isOnlyQueued)))
      count += outcomes.filter(Boolean).length
    }
    return count
  }

  /** One that ended or went meanwhile needs no cancel any more. */
  async function cancelOne(accountId: string, id: string, isOnlyQueued: boolean): Promise<boolean> {
    try {
      const { status } = await jobs.cancel(accountId, id, { isOnlyQueued })
      return status === 'canceled' || status === 'canceling'
    } catch (error) {
      if (error instanceof ServiceError && error.refusal === 'not_found') return false
      throw error
    }
  }
}

function readWish(body: JsonValue): CancelWish {
  if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
  const { ids, filter } = body
  if ((ids === undefined) === (filter === undefined))
    throw new ServiceError('invalid_request', 'the body must have either ids or filter')
  const isOnlyQueued = body['only_waiting'] === true
  return {
    ids: ids === undefined ? null : readIds(ids),
    filter: filter === undefined ? null : readFilterBody(filter),
    statuses: isOnlyQueued ? ['queued'] : ['queued', 'running'],
    isOnlyQueued,
    isDry: body['dry_run'] === true,
  }
}

function readIds(value: JsonValue): string[] {
  const isList = Array.isArray(value) && value.length <= MAX_IDS && value.every((id) => typeof id === 'string')
  if (!isList) throw invalidField('ids', `must be a list of at most ${MAX_IDS} ids`)
  return (value as string[]).filter(isUuid)
}

/**
 * The executed graph with some inputs changed, as a new job. It happens here, because a seed has up to 64 bits, which a page could
 * not hold, and because files in an executed graph are named by their content: the new job has the very same ones.
 */
export function rerunJob(app: FastifyInstance, deps: ConsoleDeps): void {
  const { callerOf, jobs, console: parts, clock, limits } = deps
  app.post(`${CONSOLE_API}/jobs/:id/rerun`, async (request, reply) => {
    const { accountId, scopes, keyId } = callerOf(request)
    const jobId = jobIdOf(request)
    const body = await readJsonBody(request, { maxBytes: limits.maxBodyBytes })
    if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
    const [before, text, layout] = await Promise.all([
      jobs.reader.find(accountId, jobId),
      jobs.reader.workflow(accountId, jobId),
      findLayout({ console: parts, jobs, clock }, accountId, jobId),
    ])
    const workflow = applyChanges(parseLosslessJson(text), body['changes'])
    const metadata = body['metadata'] === undefined ? before.metadata : readMetadata(body['metadata'])
    const job = await jobs.submit({
      ...{ accountId, scopes, keyId, workflow, metadata, priority: before.priority },
      pool: before.pool === DEFAULT_POOL ? null : before.pool,
      // What the editor sent is not sent again: with other values it would say what is not so.
      ...{ extraData: null, idempotencyKey: null, layout },
    })
    const [summary] = await parts.summaries.findMany(accountId, [job.id], clock.now())
    if (summary === undefined) throw noSuchJob()
    return sendJson(reply, 201, toSummaryView(summary))
  })
}

const MAX_CHANGES = 10_000

function applyChanges(workflow: JsonValue, changes: JsonValue | undefined): JsonValue {
  if (changes === undefined) return workflow
  if (!Array.isArray(changes) || changes.length > MAX_CHANGES)
    throw invalidField('changes', `must be a list of at most ${MAX_CHANGES} changes`)
  for (const [index, change] of changes.entries()) applyChange(workflow, change, `changes[${index}]`)
  return workflow
}

function applyChange(workflow: JsonValue, change: JsonValue, field: string): void {
  if (!isJsonObject(change) || typeof change['node'] !== 'string' || typeof change['input'] !== 'string')
    throw invalidField(field, 'must name a node and an input')
  const { node: nodeId, input, value } = change
  const node = isJsonObject(workflow) && Object.hasOwn(workflow, nodeId as string) ? workflow[nodeId as string] : null
  if (!isJsonObject(node) || !isJsonObject(node['inputs']))
    throw invalidField(field, 'names a node that the job does not have')
  if (value === undefined) throw invalidField(field, 'has no value')
  // Not by assignment: an input may be called `__proto__`.
  Object.defineProperty(node['inputs'] as JsonObject, input as string, {
    ...{ value, enumerable: true, configurable: true, writable: true },
  })
}
