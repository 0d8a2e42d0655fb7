/** Jobs in short: a page of those that fit a filter, some by their ids, and how many fit. */
import type { DatabaseSync } from 'node:sqlite'
import type { StatusCounts, SummaryFilter } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { JOB_STATUSES, type JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { type StoredSummary, type SummaryRow, TRACEBACK } from '../../../rows/summary-row.ts'
import { mergeWalks, type PageKey, type Walk } from '../../../search/merge-walks.ts'
import { isSelective, type SearchRange, toSearchPlan, toWalkLength } from '../../../search/search-plan.ts'
import { IS_RETAINED } from '../jobs/find-job.ts'
import { preparePositionNear, prepareQueuePosition } from '../jobs/queue-position.ts'
import { prepareRows } from '../statement.ts'
import { prepareRanges, type RangeInput, type SearchOrder, toParameters } from './search-statements.ts'
import { prepareFindTerms } from './search-terms.ts'

/** Dates as numbers: what crosses to the reader. */
export interface StoredFilter extends Omit<SummaryFilter, 'since' | 'until'> {
  readonly since: number
  readonly until: number
}

interface SearchInput {
  readonly accountId: string
  readonly filter: StoredFilter
  readonly order: SearchOrder
  readonly limit: number
  readonly after: PageKey
  readonly now: number
}

interface SearchAnswer {
  readonly summaries: readonly StoredSummary[]
  readonly resumeAfter: PageKey | null
}

const SUMMARY_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, completed_at, expires_at, attempt,
  version, output_count, engine_id, metadata, progress,
  iif(instr(error, ${TRACEBACK}) > 0, substr(error, 1, instr(error, ${TRACEBACK}) - 1) || '}', error),
  coalesce(title, (
    SELECT title FROM job_recipe WHERE job_recipe.account_id = job.account_id AND job_recipe.recipe = job.recipe)),
  iif(price_second IS NULL OR completed_at IS NULL, NULL, (
    SELECT charged FROM ledger_entry WHERE reference = 'job:' || job.id AND kind IN ('settle', 'release') LIMIT 1)),
  iif(output_count = 0, NULL, (
    SELECT asset_id FROM job_output WHERE job_output.seq = job.seq AND type = 'image' ORDER BY position LIMIT 1))`

/** With positions in the queue; on a page most jobs that wait are close to each other. */
function prepareComplete(database: DatabaseSync): (rows: readonly SummaryRow[]) => StoredSummary[] {
  const queuePosition = prepareQueuePosition(database)
  const positionNear = preparePositionNear(database)
  return (rows) => {
    let neighbour: Parameters<typeof positionNear>[1] | null = null
    return rows.map((row) => {
      const [seq, , accountId, pool, status, priority] = row
      if (status !== 'queued') return [row, null]
      const job = { seq, accountId, pool, priority }
      const position = (neighbour === null ? null : positionNear(job, neighbour)) ?? queuePosition(job)
      neighbour = { ...job, position }
      return [row, position]
    })
  }
}

type Entry = readonly [createdAt: number, jobId: string, seq: number, fits: number]

const isEngineIndexed = (engine: string) => engine !== 'embedded'

export function prepareSearchJobs(database: DatabaseSync): (input: SearchInput) => SearchAnswer {
  const findTerms = prepareFindTerms(database)
  const ranges = prepareRanges<Entry>(database, 'job.created_at, job.id, job.seq')
  const selectRow = prepareRows<SummaryRow>(
    database,
    `SELECT ${SUMMARY_COLUMNS} FROM job WHERE seq = ?1 AND (?2 IS NULL) AND ${IS_RETAINED}`,
  )
  const complete = prepareComplete(database)

  function walk(input: RangeInput, range: SearchRange, order: SearchOrder): Walk<Entry> {
    const walked = ranges(range.by, order, !isSelective(input.plan, range)).all(...toParameters(input, range))
    const last = walked.at(-1)
    const isCut = walked.length === input.limit && last !== undefined
    return { entries: walked.filter(([, , , fits]) => fits === 1), cutAt: isCut ? [last[0], last[1]] : null }
  }

  return ({ accountId, filter, order, limit, after, now }) => {
    const plan = toSearchPlan(toPlanned(filter), findTerms(accountId, filter), { isEngineIndexed })
    const asked = { accountId, plan, since: filter.since, until: filter.until, behind: after, now }
    const walks = plan.ranges.map((range) => walk({ ...asked, limit: toWalkLength(plan, range, limit) }, range, order))
    const page = mergeWalks(walks, { order, limit, keyOf: ([createdAt, id]) => [createdAt, id] })
    const rows = page.entries.map(([, , seq]) => selectRow.get(seq, null, now)).filter((row) => row !== undefined)
    return { summaries: complete(rows), resumeAfter: page.resumeAfter }
  }
}

/** The plan asks whether there are words, not when. */
function toPlanned(filter: StoredFilter): SummaryFilter {
  return { ...filter, since: null, until: null }
}

export function prepareFindSummaries(
  database: DatabaseSync,
): (input: {
  readonly accountId: string
  readonly jobIds: readonly string[]
  readonly now: number
}) => StoredSummary[] {
  const select = prepareRows<SummaryRow>(
    database,
    `SELECT ${SUMMARY_COLUMNS} FROM job WHERE id = ?1 AND account_id = ?2 AND ${IS_RETAINED}`,
  )
  const complete = prepareComplete(database)
  return ({ accountId, jobIds, now }) =>
    complete(jobIds.map((jobId) => select.get(jobId, accountId, now)).filter((row) => row !== undefined))
}

/** The summary, and what stands beside it: attempts, terms, what was held, what is kept of the submit. */
type StoredDetails = readonly [
  summary: StoredSummary,
  attempts: string | null,
  terms: string | null,
  held: number | null,
  origin: string | null,
]

export function prepareFindDetails(
  database: DatabaseSync,
): (input: { readonly accountId: string; readonly jobId: string; readonly now: number }) => StoredDetails | null {
  const findSummaries = prepareFindSummaries(database)
  const select = prepareRows<
    [attempts: string | null, terms: string | null, held: number | null, origin: string | null]
  >(
    database,
    `SELECT attempts,
       (SELECT terms FROM job_recipe WHERE job_recipe.account_id = job.account_id AND job_recipe.recipe = job.recipe),
       (SELECT held FROM ledger_entry WHERE reference = 'job:' || job.id AND kind = 'hold'),
       (SELECT origin FROM job_workflow WHERE job_workflow.seq = job.seq)
     FROM job WHERE id = ?`,
  )
  return ({ accountId, jobId, now }) => {
    const [summary] = findSummaries({ accountId, jobIds: [jobId], now })
    const beside = summary === undefined ? undefined : select.get(jobId)
    return summary === undefined || beside === undefined ? null : [summary, ...beside]
  }
}

interface CountInput {
  readonly accountId: string
  readonly filter: StoredFilter
  readonly now: number
}

// Entries that need no look at their jobs, and entries that do.
const COUNTED_ENTRIES = 200_000
const COUNTED_JOBS = 3000

export function prepareCountJobs(database: DatabaseSync): (input: CountInput) => StatusCounts | null {
  const findTerms = prepareFindTerms(database)
  const ranges = prepareRanges<readonly [status: JobStatus, fits: number]>(database, 'job.status')
  const readCounters = prepareReadCounters(database)
  const countListed = prepareRows<[number]>(
    database,
    `SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_listing
       WHERE account_id = ? AND status = ? AND created_at >= ? AND created_at < ? LIMIT ${COUNTED_ENTRIES})`,
  )
  return ({ accountId, filter, now }) => {
    const all = { ...filter, statuses: null }
    const plan = toSearchPlan(toPlanned(all), findTerms(accountId, all), { isEngineIndexed })
    // Ranges of a text may share jobs.
    if (filter.text !== null) return null
    const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>
    if (plan.ranges.every((range) => range.by === 'status' && !isSelective(plan, range))) {
      if (filter.since === AFTER_NONE[0] && filter.until === BEFORE_NONE[0]) return readCounters(accountId)
      for (const status of JOB_STATUSES) {
        counts[status] = countListed.get(accountId, status, filter.since, filter.until)?.[0] ?? 0
        if (counts[status] === COUNTED_ENTRIES) return null
      }
      return counts
    }
    let left = COUNTED_JOBS
    for (const range of plan.ranges) {
      const input = { accountId, plan, since: filter.since, until: filter.until, behind: BEFORE_NONE, limit: left, now }
      const walked = ranges(range.by, 'newest', false).all(...toParameters(input, range))
      for (const [status, fits] of walked) counts[status] += fits
      left -= walked.length
      if (left <= 0) return null
    }
    return counts
  }
}

/** An account keeps these with every move of a job. */
function prepareReadCounters(database: DatabaseSync): (accountId: string) => StatusCounts {
  type Counters = [queued: number, held: number, ...ended: [number, number, number, number], canceling: number]
  const select = prepareRows<Counters>(
    database,
    `SELECT queued, running, succeeded, failed, canceled, expired, (
       SELECT count(*) FROM job INDEXED BY job_listing WHERE account_id = account.id AND status = 'canceling')
     FROM account WHERE id = ?`,
  )
  return (accountId) => {
    const [queued, held, succeeded, failed, canceled, expired, canceling] = select.get(accountId) ?? [
      0, 0, 0, 0, 0, 0, 0,
    ]
    return { queued, running: held - canceling, canceling, succeeded, failed, canceled, expired }
  }
}

/** Newer than every job, and older: ids are lower-case hex. */
export const BEFORE_NONE: PageKey = [Number.MAX_SAFE_INTEGER, 'z']
export const AFTER_NONE: PageKey = [Number.MIN_SAFE_INTEGER, '']

export function prepareSweepRecipes(
  database: DatabaseSync,
): (input: { readonly now: number; readonly limit: number }) => number {
  const sweep = database.prepare(`
    DELETE FROM job_recipe WHERE (account_id, recipe) IN (
      SELECT account_id, recipe FROM job_recipe WHERE expires_at <= ? LIMIT ?)`)
  return ({ now, limit }) => Number(sweep.run(now, limit).changes)
}
