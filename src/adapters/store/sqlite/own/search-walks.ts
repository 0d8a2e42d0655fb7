/**
 * The walks of a search: an ordered range of some index, each entry with whether it fits. The indexes of recipes and titles hold ended jobs
 * only, because an entry is cheaper where nobody waits for it than in a submit; so live jobs are walked by time and asked one by one.
 */
import { JOB_STATUSES, type JobStatus } from '../../../../domain/jobs/transitions.ts'
import type { Walk } from '../../search/merge-walks.ts'
import {
  isHeld,
  isLive,
  isSelective,
  MAX_RANGES,
  type SearchPlan,
  type SearchRange,
  toWalkLength,
} from '../../search/search-plan.ts'
import {
  type AskedSearch,
  type CountedStatus,
  defineSummaries,
  keyOf,
  type SearchEntry,
  type SearchOrder,
} from '../../search/summary-store.ts'
import { all, type Steps } from '../../statements/operation.ts'
import { type Query, query, sqliteOnly, type Values } from '../../statements/statement.ts'
import { flag, integer, shape, text } from '../../tables/table.ts'

/** A question that is null is not asked. */
const FITS = `(job.expires_at > :now OR status NOT IN ('succeeded', 'failed', 'canceled'))
  AND (:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses))) AND (:code IS NULL OR code = :code)
  AND (:engine IS NULL OR (engine_id = :engine AND status <> 'queued')) AND (:pool IS NULL OR pool = :pool)
  AND (:labels IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(:labels) AS asked WHERE NOT EXISTS (
      SELECT 1 FROM job_label AS carried WHERE carried.account_id = job.account_id AND carried.key = asked.value ->> 0
        AND carried.value = asked.value ->> 1 AND carried.created_at = job.created_at AND carried.job_id = job.id)))
  AND (:recipes IS NULL OR recipe IN (SELECT value FROM json_each(:recipes)))
  AND (:outputs IS NULL OR EXISTS (SELECT 1 FROM job_output AS made WHERE made.seq = job.seq
    AND (:outputs = 'any' OR made.type = :outputs) AND (:node IS NULL OR made.node_id = :node)))`

// :second a text, :third recipes: a live job has one of them.
const LIVE_FITS = `${FITS} AND (instr(lower(title), lower(:second)) > 0 OR recipe IN (SELECT value FROM json_each(:third)))`

// An id begins with its time, so the order of ids is nearly that of creation; a range of them is small and sorted whole.
const NAMED = (condition: string) =>
  `(SELECT * FROM job INDEXED BY job_id WHERE id BETWEEN :first AND :second ${condition} LIMIT 5000) AS job WHERE true`

type RangeSql = Partial<Record<SearchRange['by'], string>>

const ACCOUNT_RANGES: RangeSql = {
  status: 'job INDEXED BY job_listing WHERE account_id = :accountId AND status = :first',
  pool: `job INDEXED BY job_pool_listing WHERE pool <> 'default' AND account_id = :accountId AND pool = :first AND status = :second`,
  code: 'job INDEXED BY job_code_listing WHERE code IS NOT NULL AND account_id = :accountId AND code = :first',
  recipe: `job INDEXED BY job_recipe_listing WHERE recipe IS NOT NULL AND completed_at IS NOT NULL
    AND account_id = :accountId AND recipe = :first`,
  title: `job INDEXED BY job_title_listing WHERE title IS NOT NULL AND completed_at IS NOT NULL
    AND account_id = :accountId AND title = :first`,
  live: 'job INDEXED BY job_listing WHERE account_id = :accountId AND status = :first',
  outputs:
    'job INDEXED BY job_output_listing WHERE output_types <> 0 AND account_id = :accountId AND output_types = :first',
  engine: `job INDEXED BY job_engine_listing WHERE engine_id IS NOT NULL AND completed_at IS NOT NULL
    AND account_id = :accountId AND engine_id = :first`,
  id: NAMED('AND account_id = :accountId'),
}

const HELD = `job INDEXED BY job_lease WHERE status IN ('running', 'canceling') AND status = :first`

/** Of all accounts. Jobs that run are few, and sorted whole; so are all that wait, when they are of too many accounts. */
const SERVICE_RANGES: RangeSql = {
  live: `job INDEXED BY job_queue WHERE status = 'queued' AND status = :first`,
  live_held: HELD,
  time: 'job INDEXED BY job_time WHERE true',
  held: HELD,
  status: `job INDEXED BY job_status_time WHERE status IN ('failed', 'canceled', 'expired') AND status = :first`,
  whole_pool: `job INDEXED BY job_pool_time WHERE pool <> 'default' AND pool = :first`,
  code: 'job INDEXED BY job_code_time WHERE code IS NOT NULL AND code = :first',
  engine: `job INDEXED BY job_engine_time WHERE engine_id <> 'embedded' AND completed_at IS NOT NULL AND engine_id = :first`,
  id: NAMED(''),
}

const ORDERS = {
  newest: { behind: '<', order: 'DESC' },
  oldest: { behind: '>', order: 'ASC' },
} as const

type WalkedRange = Pick<SearchRange, 'by' | 'accountId'>

function toSql({ by, accountId }: WalkedRange, direction: SearchOrder, fits: string): string {
  const { behind, order } = ORDERS[direction]
  const selected = `job.created_at, job.id, job.status, 0 AS expires_at, ${fits} AS fits`
  const rest = (
    time: string,
    id: string,
  ) => `AND ${time} >= :since AND ${time} < :until AND (${time}, ${id}) ${behind} (:behindAt, :behindId)
    ORDER BY ${time} ${order}, ${id} ${order} LIMIT :limit`
  if (by === 'label') {
    return `SELECT ${selected} FROM job_label AS label CROSS JOIN job ON job.id = label.job_id
      WHERE label.account_id = :accountId AND label.key = :first AND label.value = :second ${rest('label.created_at', 'label.job_id')}`
  }
  const range = (accountId === null ? SERVICE_RANGES : ACCOUNT_RANGES)[by]
  if (range === undefined) throw new Error(`no index has jobs by ${by} in this scope`)
  return `SELECT ${selected} FROM ${range} ${rest('job.created_at', 'job.id')}`
}

const entry = shape({ createdAt: integer(), id: text(), status: text<JobStatus>(), expiresAt: integer(), fits: flag() })
const statements = new Map<string, Query<SearchEntry>>()

/**
 * Made when they are first used: most searches use one or two of them. `isSure`: every entry fits, as far as the index can tell, and no
 * job is looked at.
 */
function statementOf(range: WalkedRange, direction: SearchOrder, isSure: boolean): Query<SearchEntry> {
  const name = `search.${range.accountId === null ? 'all_' : ''}${range.by}_${direction}${isSure ? '_sure' : ''}`
  const known = statements.get(name)
  if (known !== undefined) return known
  const made = query(name, entry, sqliteOnly(toSql(range, direction, isSure ? '1' : isLive(range) ? LIVE_FITS : FITS)))
  statements.set(name, made)
  return made
}

function toValues(asked: AskedSearch, plan: SearchPlan, range: SearchRange): Values {
  const { statuses, code, engine, pool, labels, recipes, outputs, node } = plan.questions
  const [first = null, second = null, third = null] = range.values
  const { since, until } = asked.filter
  const [behindAt, behindId] = asked.behind
  return {
    ...{
      accountId: range.accountId,
      statuses,
      code,
      engine,
      pool,
      recipes,
      outputs,
      node,
      first,
      second,
      third,
      now: asked.now,
    },
    labels: labels === null ? null : JSON.stringify(labels),
    ...{ since: since ?? Number.MIN_SAFE_INTEGER, until: until ?? Number.MAX_SAFE_INTEGER, behindAt, behindId },
  }
}

function withLive({ plan, scope, filter, recipes, textRecipes, queues }: AskedSearch): SearchPlan {
  const { statuses, text: sought } = filter
  const isAskedApart = sought !== null || plan.ranges.some(({ by }) => by === 'recipe')
  if (!isAskedApart) return plan
  const wanted = statuses ?? JOB_STATUSES
  const apart = JSON.stringify(sought === null ? (recipes ?? []) : textRecipes)
  const held = wanted.filter(isHeld).map((status): SearchRange => {
    return { accountId: scope, by: scope === null ? 'live_held' : 'live', values: [status, sought, apart] }
  })
  const owners = queues.length <= MAX_RANGES ? queues : [null]
  const queued = wanted.includes('queued')
    ? owners.map((accountId): SearchRange => ({ accountId, by: 'live', values: ['queued', sought, apart] }))
    : []
  return { ...plan, ranges: [...plan.ranges, ...held, ...queued] }
}

function* walkAll(asked: AskedSearch): Steps<Walk<SearchEntry>[]> {
  const plan = withLive(asked)
  const walks: Walk<SearchEntry>[] = []
  let left = asked.minWalk ?? Number.POSITIVE_INFINITY
  for (const range of plan.ranges) {
    const limit = Math.max(1, Math.min(left, Math.max(asked.minWalk ?? 0, toWalkLength(plan, range, asked.limit))))
    const statement = statementOf(range, asked.order, !isSelective(plan, range))
    const walked = yield* all(statement, { ...toValues(asked, plan, range), limit })
    const last = walked.at(-1)
    const cutAt = walked.length === limit && last !== undefined ? keyOf(last) : null
    walks.push({ entries: walked.filter(({ fits }) => fits), cutAt })
    left -= walked.length
  }
  return walks
}

const COUNTED_ENTRIES = 200_000
const BETWEEN = query(
  'search.between',
  shape({ status: text<JobStatus>(), jobs: integer() }),
  sqliteOnly(`SELECT status, count(*) AS jobs FROM (
     SELECT status FROM job INDEXED BY job_listing
     WHERE account_id = :accountId AND status IN (${JOB_STATUSES.map((status) => `'${status}'`).join(', ')})
       AND created_at >= :since AND created_at < :until LIMIT ${COUNTED_ENTRIES}) AS listed
   GROUP BY status`),
)

function* countBetween(accountId: string, since: number, until: number): Steps<readonly CountedStatus[] | null> {
  const counted = yield* all(BETWEEN, { accountId, since, until })
  return counted.reduce((sum, { jobs }) => sum + jobs, 0) < COUNTED_ENTRIES ? counted : null
}

export const summarySteps = defineSummaries({ dialect: 'sqlite', walkAll, countBetween })
