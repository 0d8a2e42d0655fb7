/**
 * The query of a list, read from the raw text: a repeated name, a raw `;` and a bad escape are refused, where a framework
 * would guess. Unknown names are ignored.
 */
import { ServiceError } from '../../domain/errors.ts'
import type { ListRequest } from '../../domain/jobs/read/list-jobs.ts'
import { isMetadataKey, isMetadataValue } from '../../domain/jobs/submit/job-metadata.ts'
import { JOB_STATUSES, type JobStatus } from '../../domain/jobs/transitions.ts'
import type { TimeCursors } from '../kit/cursor.ts'
import { type QueryPair, readQuery } from '../kit/query.ts'

export interface ListQuery {
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

export interface ListPlace {
  readonly accountId: string
  /** What the address is limited to. */
  readonly pool: string | null
}

/** A cursor of one account or address means nothing at another. */
export function readListQuery(url: string, { accountId, pool }: ListPlace, cursors: TimeCursors): ListQuery {
  const pairs = readQuery(url)
  if (pairs === null) throw badFilter('the query holds a raw ";" or a bad percent escape; escape names and values')
  const metadata = readMetadataFilters(pairs)
  const statuses = readStatuses(findOne(pairs, 'status'))
  const limit = readLimit(findOne(pairs, 'limit'))
  const filters = JSON.stringify([accountId, statuses, Object.entries(metadata).sort(), pool])
  const cursorText = findOne(pairs, 'cursor')
  const cursor = cursorText === undefined ? null : cursors.read(cursorText, filters)
  return { request: { pool, statuses, metadata, limit, cursor }, filters }
}

function badFilter(message: string): ServiceError {
  return new ServiceError('invalid_metadata_filter', message)
}

function findOne(pairs: readonly QueryPair[], name: string): string | undefined {
  const values = pairs.filter((pair) => pair[0] === name)
  if (values.length > 1) throw new ServiceError('invalid_request', `${name} is given more than once`)
  return values[0]?.[1]
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

function readLimit(text: string | undefined): number {
  if (text === undefined) return DEFAULT_LIMIT
  const limit = LIMIT.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= MAX_LIMIT) return limit
  throw new ServiceError('invalid_request', `limit must be an integer from 1 to ${MAX_LIMIT}`)
}
