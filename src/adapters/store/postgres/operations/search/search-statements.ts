/**
 * The statements of a search. Ended jobs are found by an ordered range of some index, each entry with whether it fits. Live jobs are
 * few and are asked directly, and so are labels and ids, which live and ended jobs share.
 */
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import type { SearchRange } from '../../../search/search-plan.ts'
import { type Statement, statement } from '../../database/statement.ts'

/** `place`: of the range, from 1. */
export type EntryRow = readonly [
  place: number,
  createdAt: number,
  id: string,
  expiresAt: number,
  status: JobStatus,
  fits: boolean,
]

const ORDERS = {
  newest: { behind: '<', order: 'DESC' },
  oldest: { behind: '>', order: 'ASC' },
} as const

export type SearchOrder = keyof typeof ORDERS

// $1 account or null, $2 statuses, $3 since, $4 until, $5 and $6 behind, $7 limit, $8 engine, $9 pool, $10 and $11 labels,
// $12 recipes, $13 type of an output, $14 its node. Whatever range a job was found in: outside of the scope it does not fit.
// `OFFSET 0` keeps the server from reading all outputs of everybody into a table first.
const QUESTIONS = `($1::text IS NULL OR account_id = $1) AND ($2::text[] IS NULL OR status = ANY($2))
  AND ($8::text IS NULL OR (engine_id = $8 AND status <> 'queued'))
  AND ($9::text IS NULL OR pool = $9) AND ($12::text[] IS NULL OR recipe = ANY($12))
  AND ($10::text[] IS NULL OR NOT EXISTS (
    SELECT 1 FROM unnest($10::text[], $11::text[]) AS asked(key, value) WHERE NOT EXISTS (
      SELECT 1 FROM job_label AS carried WHERE carried.account_id = job.account_id AND carried.key = asked.key
        AND carried.value = asked.value AND carried.created_at = job.created_at AND carried.job_id = job.id
        AND carried.expires_at = job.expires_at)))
  AND ($13::text IS NULL OR EXISTS (
    SELECT 1 FROM output AS made WHERE made.job_id = job.id AND made.expires_at = job.expires_at AND made.position IS NOT NULL
      AND ($13 = 'any' OR made.type = $13) AND ($14::text IS NULL OR made.node_id = $14) OFFSET 0))`
// $15 code, $16 now
const FITS = `(expires_at > $16 OR status = 'expired') AND ($15::text IS NULL OR code = $15) AND ${QUESTIONS}`
// A live job has no code.
const LIVE_FITS = `$15::text IS NULL AND ${QUESTIONS}`

function within(direction: SearchOrder, time = 'created_at', id = 'id'): string {
  const { behind, order } = ORDERS[direction]
  return `${time} >= $3 AND ${time} < $4 AND (${time}, ${id}) ${behind} ($5, $6::uuid)
    ORDER BY ${time} ${order}, ${id} ${order} LIMIT $7`
}

/**
 * The same for one value of a column, which comes before the time in an index. It is asked for as a range: of a value that it does not
 * know, the server believes that it is common, and would look through everything by time for one that is rare.
 */
function withinValue({ column, value }: OfValue, direction: SearchOrder): string {
  const { behind, order } = ORDERS[direction]
  const far =
    direction === 'newest' ? `(${column}, created_at) >= (${value}, $3)` : `(${column}, created_at) < (${value}, $4)`
  const near = direction === 'newest' ? 'created_at < $4' : 'created_at >= $3'
  return `(${column}, created_at, id) ${behind} (${value}, $5, $6::uuid) AND ${far} AND ${near}
    ORDER BY ${column} ${order}, created_at ${order}, id ${order} LIMIT $7`
}

interface OfValue {
  readonly column: string
  readonly value: string
}

const OF_VALUE: Readonly<Record<string, OfValue>> = {
  recipe: { column: 'recipe', value: 'asked.first' },
  engine: { column: 'engine_id', value: 'asked.first' },
  title: { column: 'title', value: 'asked.first' },
  outputs: { column: 'output_types', value: 'asked.first::smallint' },
}

// $17 and $18: the values of each range, $19: its account
type Indexed = Exclude<SearchRange['by'], 'label' | 'id' | 'time' | 'held' | 'whole_pool' | 'live' | 'live_held'>
const ACCOUNT_CONDITIONS: Record<Indexed, string> = {
  status: 'status = asked.first',
  pool: `pool <> 'default' AND pool = asked.first AND status = asked.second`,
  code: 'code IS NOT NULL AND code = asked.first',
  recipe: 'recipe IS NOT NULL',
  engine: 'engine_id IS NOT NULL',
  title: 'title IS NOT NULL',
  outputs: 'output_types > 0',
}

/** Of all accounts. Those that run are found among the live ones. */
const SERVICE_CONDITIONS: Record<ServiceIndexed, string> = {
  time: 'true',
  status: `status <> 'succeeded' AND status = asked.first`,
  whole_pool: `pool <> 'default' AND pool = asked.first`,
  code: ACCOUNT_CONDITIONS.code,
  engine: ACCOUNT_CONDITIONS.engine,
}
type ServiceIndexed = 'time' | 'status' | 'whole_pool' | 'code' | 'engine'

const ASKED = 'unnest($17::text[], $18::text[], $19::text[]) WITH ORDINALITY AS asked(first, second, account, place)'

function doneSql(by: string, condition: string, direction: SearchOrder): string {
  const value = OF_VALUE[by]
  const range = value === undefined ? within(direction) : withinValue(value, direction)
  return `SELECT asked.place, found.* FROM ${ASKED} CROSS JOIN LATERAL (
    SELECT created_at, id, expires_at, status, ${FITS} FROM job_done AS job
    WHERE ${condition} AND ${range}) AS found ${inOrder('found.id', direction)}`
}

function inOrder(id: string, direction: SearchOrder): string {
  const { order } = ORDERS[direction]
  return `ORDER BY place, ${id.replace(/\w+$/, 'created_at')} ${order}, ${id} ${order}`
}

const EITHER = (condition: (table: string) => string) => `
  SELECT created_at, id, expires_at, status, ${LIVE_FITS} AS fits FROM job WHERE ${condition('job')}
  UNION ALL
  SELECT created_at, id, expires_at, status, ${FITS} FROM job_done AS job WHERE ${condition('job_done')}`

function labelSql(direction: SearchOrder): string {
  const either = EITHER((table) => `id = label.job_id${table === 'job' ? '' : ' AND expires_at = label.expires_at'}`)
  return `SELECT asked.place, label.*, found.status, coalesce(found.fits, false) FROM ${ASKED} CROSS JOIN LATERAL (
    SELECT created_at, job_id, expires_at FROM job_label
    WHERE account_id = asked.account AND key = asked.first AND value = asked.second
      AND ${within(direction, 'created_at', 'job_id')}) AS label
    LEFT JOIN LATERAL (${either}) AS found ON true ${inOrder('label.job_id', direction)}`
}

/** An id begins with its time, so the order of ids is nearly that of creation; a range of them is small and sorted whole. */
function idSql(direction: SearchOrder): string {
  const either = EITHER(
    () => 'id BETWEEN asked.first::uuid AND asked.second::uuid AND ($1::text IS NULL OR account_id = $1)',
  )
  return `SELECT asked.place, found.* FROM ${ASKED} CROSS JOIN LATERAL (
    SELECT * FROM (SELECT * FROM (${either}) AS both_kinds LIMIT 5000) AS named WHERE ${within(direction)}) AS found
    ${inOrder('found.id', direction)}`
}

type Statements = Readonly<Partial<Record<SearchRange['by'], Statement<EntryRow>>>>

/** `word`: what tells the statements of a scope from those of the other. */
function prepare(word: string, conditions: Readonly<Record<string, string>>, direction: SearchOrder): Statements {
  const made = (by: string, sql: string) => statement<EntryRow>(`search.${word}${by}_${direction}`, sql)
  const done = Object.entries(conditions).map(([by, condition]) => [by, made(by, doneSql(by, condition, direction))])
  return {
    ...Object.fromEntries(done),
    label: made('label', labelSql(direction)),
    id: made('id', idSql(direction)),
  }
}

const ofAccount = Object.fromEntries(
  Object.entries(ACCOUNT_CONDITIONS).map(([by, condition]) => [by, `account_id = asked.account AND ${condition}`]),
)

/** The statement for ranges of this kind; null: no ended job can be in them. */
export function rangesOf({ by, accountId }: SearchRange, direction: SearchOrder): Statement<EntryRow> | null {
  return (accountId === null ? SERVICE_RANGES : ACCOUNT_RANGES)[direction][by] ?? null
}

const ACCOUNT_RANGES = { newest: prepare('', ofAccount, 'newest'), oldest: prepare('', ofAccount, 'oldest') }
const SERVICE_RANGES = {
  newest: prepare('all_', SERVICE_CONDITIONS, 'newest'),
  oldest: prepare('all_', SERVICE_CONDITIONS, 'oldest'),
}

// Every row fits. $16: a text, $17: recipes that have it. Held jobs are few at any time, so without those that wait they are read
// and then sorted.
function liveSql(direction: SearchOrder, owner: string, only: string): string {
  const columns = `0, created_at, id, expires_at, status, true`
  return `SELECT ${columns} FROM (
    SELECT * FROM job WHERE ${owner} AND ${LIVE_FITS} AND ($16::text IS NULL OR recipe = ANY($17::text[])
      OR strpos(lower(title), lower($16)) > 0) ${only}) AS job WHERE ${within(direction)}`
}

const HELD = `AND status IN ('running', 'canceling') OFFSET 0`

function prepareLive(word: string, owner: string) {
  const made = (direction: SearchOrder) => ({
    all: statement<EntryRow>(`search.${word}live_${direction}`, liveSql(direction, owner, '')),
    held: statement<EntryRow>(`search.${word}held_${direction}`, liveSql(direction, owner, HELD)),
  })
  return { newest: made('newest'), oldest: made('oldest') }
}

export const LIVE = {
  account: prepareLive('', 'account_id = $1'),
  service: prepareLive('all_', 'true'),
}
