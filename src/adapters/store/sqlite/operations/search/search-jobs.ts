/** Jobs in short: a page of those that fit a filter, some by their ids, and how many fit. */
import type { DatabaseSync } from 'node:sqlite'
import type { StatusCounts, SummaryFilter, SummaryScope } from '../../../../../domain/jobs/summaries/summary-store.ts'
import { JOB_STATUSES, type JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { type StoredSummary, type SummaryRow, TRACEBACK } from '../../../rows/jobs/summary-row.ts'
import { type MergedPage, mergeWalks, type PageKey, type Walk } from '../../../search/merge-walks.ts'
import {
  isPlain,
  isSelective,
  type SearchPlan,
  type SearchRange,
  toSearchPlan,
  toWalkLength,
} from '../../../search/search-plan.ts'
import { type OwnedName, toServicePlan } from '../../../search/service-plan.ts'
import { prepareCountByStatus } from '../accounts/account-counters.ts'
import { IS_RETAINED } from '../jobs/find-job.ts'
import { preparePositionNear, prepareQueuePosition } from '../jobs/queue-position.ts'
import { prepareRows } from '../statement.ts'
import { withLive } from './live-ranges.ts'
import { prepareRanges, type RangeInput, type SearchOrder, toParameters } from './search-statements.ts'
import { prepareFindTerms } from './search-terms.ts'
import { prepareFindServiceTerms } from './service-terms.ts'

/** Dates as numbers: what crosses to the reader. */
export interface StoredFilter extends Omit<SummaryFilter, 'since' | 'until'> {
  readonly since: number
  readonly until: number
}

interface SearchInput {
  readonly scope: SummaryScope
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
    SELECT asset_id FROM job_output WHERE job_output.seq = job.seq AND type = 'image' ORDER BY position LIMIT 1)),
  reused_from`

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

interface Asked extends Omit<RangeInput, 'limit'> {
  readonly plan: SearchPlan
}

type Entry = readonly [createdAt: number, jobId: string, seq: number, fits: number]

// Beyond this the page ends early.
const MAX_EXTENDED = 30

function preparePlan(database: DatabaseSync): (scope: SummaryScope, filter: StoredFilter) => SearchPlan {
  const findTerms = prepareFindTerms(database)
  const findServiceTerms = prepareFindServiceTerms(database)
  return (scope, filter) => {
    const { statuses, text } = filter
    if (scope === null) {
      const found = findServiceTerms(filter)
      const plan = toServicePlan(toPlanned(filter), found)
      const nameOf = ([, recipe]: OwnedName) => recipe
      const recipes = (found.text?.recipes ?? found.recipes)?.map(nameOf) ?? []
      return withLive(plan, { scope, statuses, text, recipes, queues: found.waiting })
    }
    const found = findTerms(scope, filter)
    const plan = toSearchPlan(toPlanned(filter), { ...found, accountId: scope })
    const recipes = found.text?.recipes ?? found.recipes ?? []
    return withLive(plan, { scope, statuses, text, recipes, queues: [scope] })
  }
}

export function prepareSearchJobs(database: DatabaseSync): (input: SearchInput) => SearchAnswer {
  const planOf = preparePlan(database)
  const ranges = prepareRanges<Entry>(database, 'job.created_at, job.id, job.seq')
  const selectRow = prepareRows<SummaryRow>(
    database,
    `SELECT ${SUMMARY_COLUMNS} FROM job WHERE seq = ?1 AND (?2 IS NULL) AND ${IS_RETAINED}`,
  )
  const complete = prepareComplete(database)

  function walk(input: RangeInput, range: SearchRange, order: SearchOrder): Walk<Entry> {
    const walked = ranges(range, order, !isSelective(input.plan, range)).all(...toParameters(input, range))
    const last = walked.at(-1)
    const isCut = walked.length === input.limit && last !== undefined
    return { entries: walked.filter(([, , , fits]) => fits === 1), cutAt: isCut ? [last[0], last[1]] : null }
  }

  /** A walk that ended before the others holds up the page: it goes on from there, as long as the page is not full. */
  function mergeWhole(asked: Asked, order: SearchOrder, limit: number): MergedPage<Entry> {
    const { plan } = asked
    const walks = plan.ranges.map((range) => walk({ ...asked, limit: toWalkLength(plan, range, limit) }, range, order))
    let extended = 0
    function extend(index: number, behind: PageKey): Walk<Entry> | null {
      const range = plan.ranges[index]
      if (range === undefined || extended === MAX_EXTENDED) return null
      extended += 1
      return walk({ ...asked, behind, limit: Math.max(limit, toWalkLength(plan, range, limit)) }, range, order)
    }
    return mergeWalks(walks, { order, limit, keyOf: ([createdAt, id]) => [createdAt, id], extend })
  }

  return ({ scope, filter, order, limit, after, now }) => {
    const plan = planOf(scope, filter)
    const asked = { plan, since: filter.since, until: filter.until, behind: after, now }
    const page = mergeWhole(asked, order, limit)
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
  readonly scope: SummaryScope
  readonly jobIds: readonly string[]
  readonly now: number
}) => StoredSummary[] {
  const select = prepareRows<SummaryRow>(
    database,
    `SELECT ${SUMMARY_COLUMNS} FROM job WHERE id = ?1 AND (?2 IS NULL OR account_id = ?2) AND ${IS_RETAINED}`,
  )
  const complete = prepareComplete(database)
  return ({ scope, jobIds, now }) =>
    complete(jobIds.map((jobId) => select.get(jobId, scope, now)).filter((row) => row !== undefined))
}

/** What stands beside the summary: attempts, terms, what was held, what is kept of the submit, the batch. */
type Beside = [
  attempts: string | null,
  terms: string | null,
  held: number | null,
  origin: string | null,
  batchId: string | null,
]

export function prepareFindDetails(
  database: DatabaseSync,
): (input: {
  readonly accountId: string
  readonly jobId: string
  readonly now: number
}) => readonly [StoredSummary, ...Beside] | null {
  const findSummaries = prepareFindSummaries(database)
  // A batch has the times of its jobs, and these lead to it: a job itself knows nothing of it.
  const select = prepareRows<Beside>(
    database,
    `SELECT attempts,
       (SELECT terms FROM job_recipe WHERE job_recipe.account_id = job.account_id AND job_recipe.recipe = job.recipe),
       (SELECT held FROM ledger_entry WHERE reference = 'job:' || job.id AND kind = 'hold'),
       (SELECT origin FROM job_workflow WHERE job_workflow.seq = job.seq),
       (SELECT job_batch.id FROM job_batch INDEXED BY job_batch_expiry
        WHERE job_batch.expires_at = job.expires_at AND job_batch.created_at = job.created_at
          AND job_batch.account_id = job.account_id AND instr(jobs, '"' || job.id || '"') > 0)
     FROM job WHERE id = ?`,
  )
  return ({ accountId, jobId, now }) => {
    const [summary] = findSummaries({ scope: accountId, jobIds: [jobId], now })
    const beside = summary === undefined ? undefined : select.get(jobId)
    return summary === undefined || beside === undefined ? null : [summary, ...beside]
  }
}

interface CountInput {
  readonly scope: SummaryScope
  readonly filter: StoredFilter
  readonly now: number
}

// Entries that need no look at their jobs, and entries that do.
const COUNTED_ENTRIES = 200_000
const COUNTED_JOBS = 3000

export function prepareCountJobs(database: DatabaseSync): (input: CountInput) => StatusCounts | null {
  const planOf = preparePlan(database)
  const countByStatus = prepareCountByStatus(database)
  const ranges = prepareRanges<readonly [status: JobStatus, fits: number]>(database, 'job.status')
  const readCounters = prepareReadCounters(database)
  const countListed = prepareRows<[number]>(
    database,
    `SELECT count(*) FROM (SELECT 1 FROM job INDEXED BY job_listing
       WHERE account_id = ? AND status = ? AND created_at >= ? AND created_at < ? LIMIT ${COUNTED_ENTRIES})`,
  )
  function countBetween(accountId: string, { since, until }: StoredFilter): StatusCounts | null {
    const counts = noCounts()
    for (const status of JOB_STATUSES) {
      counts[status] = countListed.get(accountId, status, since, until)?.[0] ?? 0
      if (counts[status] === COUNTED_ENTRIES) return null
    }
    return counts
  }

  return ({ scope, filter, now }) => {
    // Ranges of a text may share jobs.
    if (filter.text !== null) return null
    const all = { ...filter, statuses: null }
    const plan = planOf(scope, all)
    if (isPlain(plan)) {
      const isEverything = filter.since === AFTER_NONE[0] && filter.until === BEFORE_NONE[0]
      if (isEverything) return scope === null ? countByStatus(null) : readCounters(scope)
      if (scope !== null) return countBetween(scope, filter)
    }
    const counts = noCounts()
    let left = COUNTED_JOBS
    for (const range of plan.ranges) {
      const input = { plan, since: filter.since, until: filter.until, behind: BEFORE_NONE, limit: left, now }
      const walked = ranges(range, 'newest', false).all(...toParameters(input, range))
      for (const [status, fits] of walked) counts[status] += fits
      left -= walked.length
      if (left <= 0) return null
    }
    return counts
  }
}

function noCounts(): Record<JobStatus, number> {
  return { queued: 0, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 }
}

export function prepareCountEnded(
  database: DatabaseSync,
): (input: { readonly from: number; readonly to: number }) => StatusCounts {
  const select = prepareRows<[status: JobStatus, count: number]>(
    database,
    `SELECT job.status, count(*) FROM account CROSS JOIN job INDEXED BY job_ended ON job.account_id = account.id
     WHERE job.status IN ('succeeded', 'failed', 'canceled') AND job.started_at IS NOT NULL
       AND job.completed_at >= ?1 AND job.completed_at < ?2 GROUP BY job.status
     UNION ALL
     SELECT 'expired', count(*) FROM job INDEXED BY job_grace
     WHERE status = 'expired' AND completed_at >= ?1 AND completed_at < ?2`,
  )
  return ({ from, to }) => ({ ...noCounts(), ...Object.fromEntries(select.all(from, to)) })
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
