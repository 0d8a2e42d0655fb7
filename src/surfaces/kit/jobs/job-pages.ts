/** Pages of jobs in short, as a query asks for them: one account's, or, for the operator, those of all. */
import type { Clock } from '../../../../lib/clock.ts'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { ServiceError } from '../../../domain/errors.ts'
import { isMetadataKey, isMetadataValue } from '../../../domain/jobs/submit/job-labels.ts'
import type {
  JobSummary,
  SummaryFilter,
  SummaryQuery,
  SummaryScope,
  SummaryStore,
} from '../../../domain/jobs/summaries/summary-store.ts'
import { JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'
import { createTimeCursors } from '../cursor.ts'
import { type QueryPair, readQuery, refuseRepeated } from '../request.ts'

interface PageDeps {
  readonly summaries: Pick<SummaryStore, 'search' | 'count'>
  readonly cursorSecret: Uint8Array
  readonly clock: Clock
}

interface PageTerms {
  readonly toView: (summary: JobSummary) => object
  /** What a query may have beside filters and the words of a page. */
  readonly others?: readonly string[]
}

/** Throws invalid_request and invalid_cursor. */
export function createReadPage({ summaries, cursorSecret, clock }: PageDeps) {
  const cursors = createTimeCursors(cursorSecret)
  return async (scope: SummaryScope, fields: Fields, { toView, others = [] }: PageTerms): Promise<object> => {
    refuseUnknown(fields, ['sort', 'cursor', 'limit', 'counts', ...others])
    if ((fields.get('counts') ?? '1') !== '1')
      throw new ServiceError('invalid_request', 'counts must be 1, or be left out')
    const filter = readFilter(fields)
    const order = readOrder(fields.get('sort'))
    const name = JSON.stringify([scope, order, nameFilter(filter)])
    const cursor = fields.get('cursor') ?? null
    const now = clock.now()
    const after = cursor === null ? null : cursors.read(cursor, name)
    const [page, counts] = await Promise.all([
      summaries.search(scope, { filter, order, limit: readLimit(fields), after, now }),
      fields.get('counts') === '1' ? summaries.count(scope, filter, now) : null,
    ])
    return {
      jobs: page.summaries.map(toView),
      next_cursor: page.next === null ? null : cursors.encode(page.next, name),
      counts,
      now: now.toISOString(),
    }
  }
}

function readOrder(text = 'newest'): SummaryQuery['order'] {
  if (text === 'newest' || text === 'oldest') return text
  throw new ServiceError('invalid_request', 'sort must be newest or oldest')
}

// The filters over jobs as a query and as a body spell them. Names that are not known are refused: a typing error must not widen what is acted on.

const MAX_LENGTH = 200
const DEFAULT_LIMIT = 50
const MAX_LIMIT = 100
const MAX_PAIRS = 3
const META = 'meta.'
const FILTERS = ['status', 'q', 'since', 'until', 'code', 'failure', 'class', 'weights', 'engine', 'pool'] as const

type Fields = ReadonlyMap<string, string>

function refused(message: string): ServiceError {
  return new ServiceError('invalid_request', message)
}

/** The pairs of a query, each name once. */
export function readFields(url: string): Fields {
  const pairs = readQuery(url)
  if (pairs === null) throw refused('the query holds a raw ";" or a bad percent escape; escape names and values')
  refuseRepeated(
    pairs,
    pairs.map(([name]) => name),
  )
  return new Map<string, string>(pairs as QueryPair[])
}

/** The members of an object that hold a text. */
export function readFilterBody(value: JsonValue | undefined): SummaryFilter {
  if (!isJsonObject(value)) throw refused('filter must be an object')
  const entries = Object.entries(value).map(([name, text]): [string, string] => {
    if (typeof text !== 'string') throw refused(`filter.${name} must be a text`)
    mustBeFilter(name)
    return [name, text]
  })
  return readFilter(new Map(entries))
}

function mustBeFilter(name: string): void {
  const isKnown = (FILTERS as readonly string[]).includes(name) || name.startsWith(META)
  if (!isKnown) throw refused(`there is no filter ${name}`)
}

/** Refuses fields that are neither a filter nor one of `others`: a misspelt one would show everything. */
function refuseUnknown(fields: Fields, others: readonly string[]): void {
  for (const name of fields.keys()) if (!others.includes(name)) mustBeFilter(name)
}

/** Fields that are no filter are left to the caller. */
export function readFilter(fields: Fields): SummaryFilter {
  const text = (name: (typeof FILTERS)[number]) => {
    const value = fields.get(name) ?? ''
    if (value.length > MAX_LENGTH) throw refused(`${name} must have at most ${MAX_LENGTH} characters`)
    // Nothing that is stored holds it, and Postgres takes no text that does.
    if (value.includes('\0')) throw refused(`${name} must not hold a NUL character`)
    return value === '' ? null : value
  }
  return {
    statuses: readStatuses(text('status')),
    since: readTime('since', text('since')),
    until: readTime('until', text('until')),
    code: text('code'),
    failure: text('failure'),
    classType: text('class'),
    weights: text('weights'),
    engine: text('engine'),
    pool: text('pool'),
    metadata: readLabels(fields),
    outputs: null,
    text: text('q')?.trim() || null,
  }
}

/** Equal exactly when the filters are: what a cursor is bound to. */
function nameFilter(filter: SummaryFilter): string {
  return JSON.stringify([Object.entries({ ...filter, metadata: null }), Object.entries(filter.metadata).sort()])
}

function readStatuses(text: string | null): JobStatus[] | null {
  if (text === null) return null
  const named = new Set(text.split(','))
  const known = JOB_STATUSES.filter((status) => named.has(status))
  if (known.length === named.size) return known
  throw refused(`status must be a comma list of ${JOB_STATUSES.join(', ')}`)
}

function readTime(name: string, text: string | null): Date | null {
  if (text === null) return null
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? new Date(text) : new Date(Number.NaN)
  if (Number.isNaN(time.getTime())) throw refused(`${name} must be a time such as 2026-01-31T12:00:00Z`)
  return time
}

function readLabels(fields: Fields): Record<string, string> {
  const labels = [...fields]
    .filter(([name]) => name.startsWith(META))
    .map(([name, value]) => [name.slice(META.length), value] as const)
  if (labels.length > MAX_PAIRS) throw refused(`at most ${MAX_PAIRS} metadata filters are allowed`)
  for (const [key, value] of labels)
    if (!isMetadataKey(key) || !isMetadataValue(value)) throw refused(`${META}${key} is not a valid pair of metadata`)
  return Object.fromEntries(labels)
}

export function readLimit(fields: Fields, most = MAX_LIMIT): number {
  const text = fields.get('limit') ?? String(DEFAULT_LIMIT)
  const limit = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= most) return limit
  throw refused(`limit must be an integer from 1 to ${most}`)
}
