/** The statements of a search: an ordered range of some index, each entry with whether it fits. */
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { isLive, type SearchPlan, type SearchRange } from '../../../search/search-plan.ts'
import { IS_RETAINED } from '../jobs/find-job.ts'
import { prepareRows, type RowStatement } from '../statement.ts'

/** A question that is null is not asked. */
const FITS = `${IS_RETAINED} AND (?2 IS NULL OR status IN (SELECT value FROM json_each(?2))) AND (?4 IS NULL OR code = ?4)
  AND (?5 IS NULL OR (engine_id = ?5 AND status <> 'queued')) AND (?6 IS NULL OR pool = ?6)
  AND (?7 IS NULL OR NOT EXISTS (
    SELECT 1 FROM json_each(?7) AS asked WHERE NOT EXISTS (
      SELECT 1 FROM job_label AS carried WHERE carried.account_id = job.account_id AND carried.key = asked.value ->> 0
        AND carried.value = asked.value ->> 1 AND carried.created_at = job.created_at AND carried.job_id = job.id)))
  AND (?8 IS NULL OR recipe IN (SELECT value FROM json_each(?8)))
  AND (?16 IS NULL OR EXISTS (SELECT 1 FROM job_output AS made WHERE made.seq = job.seq
    AND (?16 = 'any' OR made.type = ?16) AND (?17 IS NULL OR made.node_id = ?17)))`

// ?15 a text, ?18 recipes: a live job has one of them.
const LIVE_FITS = `${FITS} AND (instr(lower(title), lower(?15)) > 0 OR recipe IN (SELECT value FROM json_each(?18)))`

const UNUSED = '?1 AND ?2 AND ?3 AND ?4 AND ?5 AND ?6 AND ?7 AND ?8 AND ?14 AND ?15 AND ?16 AND ?17 AND ?18'

// An id begins with its time, so the order of ids is nearly that of creation; a range of them is small and sorted whole.
const NAMED = (condition: string) =>
  `(SELECT * FROM job INDEXED BY job_id WHERE id BETWEEN ?14 AND ?15 ${condition} LIMIT 5000) AS job WHERE true`

type RangeSql = Partial<Record<SearchRange['by'], string>>

const ACCOUNT_RANGES: RangeSql = {
  status: 'job INDEXED BY job_listing WHERE account_id = ?1 AND status = ?14',
  pool: `job INDEXED BY job_pool_listing WHERE pool <> 'default' AND account_id = ?1 AND pool = ?14 AND status = ?15`,
  code: 'job INDEXED BY job_code_listing WHERE code IS NOT NULL AND account_id = ?1 AND code = ?14',
  recipe: `job INDEXED BY job_recipe_listing WHERE recipe IS NOT NULL AND completed_at IS NOT NULL
    AND account_id = ?1 AND recipe = ?14`,
  title: `job INDEXED BY job_title_listing WHERE title IS NOT NULL AND completed_at IS NOT NULL
    AND account_id = ?1 AND title = ?14`,
  live: 'job INDEXED BY job_listing WHERE account_id = ?1 AND status = ?14',
  outputs: 'job INDEXED BY job_output_listing WHERE output_types <> 0 AND account_id = ?1 AND output_types = ?14',
  engine: `job INDEXED BY job_engine_listing WHERE engine_id IS NOT NULL AND completed_at IS NOT NULL
    AND account_id = ?1 AND engine_id = ?14`,
  id: NAMED('AND account_id = ?1'),
}

const HELD = `job INDEXED BY job_lease WHERE status IN ('running', 'canceling') AND status = ?14`

/** Of all accounts. Jobs that run are few, and sorted whole; so are all that wait, when they are of too many accounts. */
const SERVICE_RANGES: RangeSql = {
  live: `job INDEXED BY job_queue WHERE status = 'queued' AND status = ?14`,
  live_held: HELD,
  time: 'job INDEXED BY job_time WHERE true',
  held: HELD,
  status: `job INDEXED BY job_status_time WHERE status IN ('failed', 'canceled', 'expired') AND status = ?14`,
  whole_pool: `job INDEXED BY job_pool_time WHERE pool <> 'default' AND pool = ?14`,
  code: 'job INDEXED BY job_code_time WHERE code IS NOT NULL AND code = ?14',
  engine: `job INDEXED BY job_engine_time WHERE engine_id <> 'embedded' AND completed_at IS NOT NULL AND engine_id = ?14`,
  id: NAMED(''),
}

const ORDERS = {
  newest: { behind: '<', order: 'DESC' },
  oldest: { behind: '>', order: 'ASC' },
} as const

export type SearchOrder = keyof typeof ORDERS

/** ?9 and ?10: since and until. ?11 and ?12: behind this key. ?13: how many. */
function toSql({ by, accountId }: WalkedRange, selected: string, direction: SearchOrder): string {
  const { behind, order } = ORDERS[direction]
  const rest = (
    time: string,
    id: string,
  ) => `AND ${time} >= ?9 AND ${time} < ?10 AND (${time}, ${id}) ${behind} (?11, ?12)
    ORDER BY ${time} ${order}, ${id} ${order} LIMIT ?13`
  if (by === 'label') {
    return `SELECT ${selected} FROM job_label AS label CROSS JOIN job ON job.id = label.job_id
      WHERE label.account_id = ?1 AND label.key = ?14 AND label.value = ?15 ${rest('label.created_at', 'label.job_id')}`
  }
  const range = (accountId === null ? SERVICE_RANGES : ACCOUNT_RANGES)[by]
  if (range === undefined) throw new Error(`no index has jobs by ${by} in this scope`)
  return `SELECT ${selected} FROM ${range} ${rest('job.created_at', 'job.id')}`
}

type WalkedRange = Pick<SearchRange, 'by' | 'accountId'>

export interface RangeInput {
  readonly plan: Pick<SearchPlan, 'questions'>
  readonly since: number
  readonly until: number
  readonly behind: readonly [createdAt: number, jobId: string]
  readonly limit: number
  readonly now: number
}

export function toParameters(input: RangeInput, range: SearchRange): SQLInputValue[] {
  const { statuses, code, engine, pool, labels, recipes, outputs, node } = input.plan.questions
  const [first = null, second = null, third = null] = range.values
  const toJson = (list: readonly unknown[] | null) => (list === null ? null : JSON.stringify(list))
  return [
    ...[range.accountId, toJson(statuses), input.now, code, engine, pool, toJson(labels), toJson(recipes)],
    ...[input.since, input.until, ...input.behind, input.limit, first, second],
    ...[outputs, node, third],
  ]
}

/** `isSure`: every entry fits, as far as the index can tell, and no job is looked at. */
type Statements<Row> = (range: WalkedRange, direction: SearchOrder, isSure: boolean) => RowStatement<Row>

/** `selected`: of `job`. Prepared when they are first used: most searches use one or two of them. */
export function prepareRanges<Row extends readonly unknown[]>(
  database: DatabaseSync,
  selected: string,
): Statements<Row> {
  const prepared = new Map<string, RowStatement<Row>>()
  return (range, direction, isSure) => {
    const name = `${range.by} ${range.accountId === null} ${direction} ${isSure}`
    // All parameters are named, whether they are used or not.
    const fits = isSure ? `${UNUSED} OR true` : isLive(range) ? LIVE_FITS : `${FITS} AND (?18 IS NULL OR true)`
    const known = prepared.get(name) ?? prepareRows<Row>(database, toSql(range, `${selected}, ${fits}`, direction))
    prepared.set(name, known)
    return known
  }
}
