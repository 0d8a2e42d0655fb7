/**
 * A page of the account's jobs, newest first; every item is a whole job. The query is read from the raw text: a repeated name, a
 * raw `;` and a bad escape are refused, where a framework would guess. Unknown names are ignored.
 */
import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../../../lib/ids.ts'
import type { Turns, Work } from '../../../../lib/waiting/turns.ts'
import { DEFAULT_POOL } from '../../../domain/deployments/deployment.ts'
import { ServiceError } from '../../../domain/errors.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { ListJobs, ListRequest } from '../../../domain/jobs/read/list-jobs.ts'
import { isMetadataKey, isMetadataValue } from '../../../domain/jobs/submit/job-labels.ts'
import { JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'
import type { TimeCursors } from '../../kit/cursor.ts'
import { needs } from '../../kit/guards/routes.ts'
import { type QueryPair, readQuery, refuseRepeated, sendJson } from '../../kit/request.ts'
import type { ContextOf, JobReach } from '../jobs-operation.ts'
import { API_PATH, type JobBytes } from '../views/job-view.ts'

interface ListJobsDeps {
  readonly contextOf: ContextOf
  readonly list: ListJobs
  readonly jobBytes: JobBytes
  readonly cursors: TimeCursors
  readonly turns: Turns
}

const COMMA = Buffer.from(',')

export function listJobs(app: FastifyInstance, { contextOf, list, jobBytes, cursors, turns }: ListJobsDeps): void {
  app.get(`${API_PATH}/jobs`, needs('jobs:read'), async (request, reply) => {
    const context = contextOf(request)
    const query = readListQuery(request.raw.url ?? '', context, cursors)
    const { jobs, next } = await list(context.accountId, query.request)
    const items = await turns.run(writeSteps(jobs, (job) => jobBytes.inSteps(job, context)))
    // Absent rather than null on the last page: clients walk on as long as there is one.
    const cursor = next === null ? '' : `"next_cursor":${JSON.stringify(cursors.encode(next, query.filters))},`
    const end = Buffer.from(`],"truncated":false,${cursor}"has_more":${next !== null}}`)
    return sendJson(reply, 200, Buffer.concat([Buffer.from('{"jobs":['), ...items, end]))
  })
}

function* writeSteps(jobs: readonly Job[], write: (job: Job) => Work<Buffer>): Work<Buffer[]> {
  const pieces: Buffer[] = []
  for (const job of jobs) {
    if (pieces.length > 0) pieces.push(COMMA)
    pieces.push((yield* write(job)).subarray(0, -1), toListFields(job))
    yield
  }
  return pieces
}

/** Names that clients know from lists of the hosted service, and the end of the job's own bytes, which other answers share. */
function toListFields({ createdAt, startedAt, completedAt, pool }: Job): Buffer {
  const more = {
    create_time: createdAt.toISOString(),
    update_time: (completedAt ?? startedAt ?? createdAt).toISOString(),
    deployment_id: pool === DEFAULT_POOL ? null : pool,
  }
  return Buffer.from(`,${JSON.stringify(more).slice(1)}`)
}

interface ListQuery {
  readonly request: ListRequest
  /** Equal exactly when the filters are: what a cursor is bound to. */
  readonly filters: string
}

const MAX_METADATA_FILTERS = 3
const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100
const LIMIT = /^\d{1,3}$/
const METADATA_NAME = /^metadata(?:\[|$)/
const METADATA_FILTER = /^metadata\[(.*)\]$/s

/** A cursor of one account or address means nothing at another. */
function readListQuery(url: string, { accountId, pool }: JobReach, cursors: TimeCursors): ListQuery {
  const pairs = readQuery(url)
  if (pairs === null) throw badFilter('the query holds a raw ";" or a bad percent escape; escape names and values')
  const metadata = readMetadataFilters(pairs)
  const statuses = readStatuses(findOne(pairs, 'status'))
  const batchId = readBatchId(findOne(pairs, 'batch_id'))
  const limit = readLimit(findOne(pairs, 'limit'))
  const filters = JSON.stringify([
    ...[accountId, statuses, Object.entries(metadata).sort(), pool],
    ...(batchId === null ? [] : [batchId]),
  ])
  const cursorText = findOne(pairs, 'cursor')
  const cursor = cursorText === undefined ? null : cursors.read(cursorText, filters)
  return { request: { pool, batchId, statuses, metadata, limit, cursor }, filters }
}

function badFilter(message: string): ServiceError {
  return new ServiceError('invalid_metadata_filter', message)
}

function findOne(pairs: readonly QueryPair[], name: string): string | undefined {
  refuseRepeated(pairs, [name])
  return pairs.find((pair) => pair[0] === name)?.[1]
}

function readMetadataFilters(pairs: readonly QueryPair[]): Record<string, string> {
  const filters = new Map<string, string>()
  for (const [name, value] of pairs) {
    if (!METADATA_NAME.test(name)) continue
    const key = METADATA_FILTER.exec(name)?.[1]
    if (key === undefined || !isMetadataKey(key)) {
      throw badFilter('a metadata filter is written metadata[key]=value, with a key that a job could carry')
    }
    if (filters.has(key)) throw badFilter(`metadata[${key}] is given more than once`)
    if (!isMetadataValue(value)) throw badFilter(`metadata[${key}] has a value that no job could carry`)
    filters.set(key, value)
  }
  if (filters.size > MAX_METADATA_FILTERS)
    throw badFilter(`at most ${MAX_METADATA_FILTERS} metadata filters are allowed`)
  return Object.fromEntries(filters)
}

function readStatuses(text: string | undefined): JobStatus[] | null {
  if (text === undefined) return null
  const named = new Set(text.split(','))
  const known = JOB_STATUSES.filter((status) => named.has(status))
  if (known.length === named.size) return known
  throw new ServiceError('invalid_request', `status must be a comma list of ${JOB_STATUSES.join(', ')}`)
}

function readBatchId(text: string | undefined): string | null {
  if (text === undefined) return null
  if (isUuid(text)) return text
  throw new ServiceError('invalid_request', 'batch_id must be the id of a batch')
}

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = LIMIT.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new ServiceError('invalid_request', `limit must be an integer from 1 to ${MAX_LIMIT}`)
}
