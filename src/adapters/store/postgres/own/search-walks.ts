/**
 * The walks of a search. Ended jobs are found by an ordered range of some index, each entry with whether it fits. Live jobs are few and are
 * asked directly, and so are labels and ids, which live and ended jobs share.
 */
import { isTerminal, JOB_STATUSES, type JobStatus } from '../../../../domain/jobs/transitions.ts'
import type { Walk } from '../../search/merge-walks.ts'
import { type SearchPlan, type SearchRange, toWalkLength } from '../../search/search-plan.ts'
import {
  type AskedSearch,
  defineSummaries,
  keyOf,
  type SearchEntry,
  type SearchOrder,
} from '../../search/summary-store.ts'
import { type Asked, all, type Steps, together } from '../../statements/operation.ts'
import { postgresOnly, type Query, query, type Values } from '../../statements/statement.ts'
import { flag, integer, shape, text } from '../../tables/table.ts'

/** `place`: of the range, from 1. */
const entry = shape({
  ...{
    place: integer(),
    createdAt: integer(),
    id: text(),
    expiresAt: integer(),
    status: text<JobStatus>(),
    fits: flag(),
  },
})
interface PlacedEntry extends SearchEntry {
  readonly place: number
}

const ORDERS = {
  newest: { behind: '<', order: 'DESC' },
  oldest: { behind: '>', order: 'ASC' },
} as const

// Whatever range a job was found in: outside of the scope it does not fit.
// `OFFSET 0` keeps the server from reading all outputs of everybody into a table first.
const QUESTIONS = `(:scope::text IS NULL OR account_id = :scope) AND (:statuses::text[] IS NULL OR status = ANY(:statuses))
  AND (:engine::text IS NULL OR (engine_id = :engine AND status <> 'queued'))
  AND (:pool::text IS NULL OR pool = :pool) AND (:recipes::text[] IS NULL OR recipe = ANY(:recipes))
  AND (:labels.key::text[] IS NULL OR NOT EXISTS (
    SELECT 1 FROM unnest(:labels.key::text[], :labels.value::text[]) AS asked(key, value) WHERE NOT EXISTS (
      SELECT 1 FROM job_label AS carried WHERE carried.account_id = job.account_id AND carried.key = asked.key
        AND carried.value = asked.value AND carried.created_at = job.created_at AND carried.job_id = job.id
        AND carried.expires_at = job.expires_at)))
  AND (:outputs::text IS NULL OR EXISTS (
    SELECT 1 FROM output AS made WHERE made.job_id = job.id AND made.expires_at = job.expires_at AND made.position IS NOT NULL
      AND (:outputs = 'any' OR made.type = :outputs) AND (:node::text IS NULL OR made.node_id = :node) OFFSET 0))`
const FITS = `(expires_at > :now OR status = 'expired') AND (:code::text IS NULL OR code = :code) AND ${QUESTIONS}`
// A live job has no code.
const LIVE_FITS = `:code::text IS NULL AND ${QUESTIONS}`

function within(direction: SearchOrder, time = 'created_at', id = 'id'): string {
  const { behind, order } = ORDERS[direction]
  return `${time} >= :since AND ${time} < :until AND (${time}, ${id}) ${behind} (:behindAt, :behindId::uuid)
    ORDER BY ${time} ${order}, ${id} ${order} LIMIT :limit`
}

/**
 * The same for one value of a column, which comes before the time in an index. It is asked for as a range: of a value that it does not
 * know, the server believes that it is common, and would look through everything by time for one that is rare.
 */
function withinValue({ column, value }: OfValue, direction: SearchOrder): string {
  const { behind, order } = ORDERS[direction]
  const far =
    direction === 'newest'
      ? `(${column}, created_at) >= (${value}, :since)`
      : `(${column}, created_at) < (${value}, :until)`
  const near = direction === 'newest' ? 'created_at < :until' : 'created_at >= :since'
  return `(${column}, created_at, id) ${behind} (${value}, :behindAt, :behindId::uuid) AND ${far} AND ${near}
    ORDER BY ${column} ${order}, created_at ${order}, id ${order} LIMIT :limit`
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

// `firsts` and `seconds`: the values of each range, `accounts`: whose it is.
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

const ASKED =
  'unnest(:firsts::text[], :seconds::text[], :accounts::text[]) WITH ORDINALITY AS asked(first, second, account, place)'

function doneSql(by: string, condition: string, direction: SearchOrder): string {
  const value = OF_VALUE[by]
  const range = value === undefined ? within(direction) : withinValue(value, direction)
  return `SELECT asked.place, found.* FROM ${ASKED} CROSS JOIN LATERAL (
    SELECT created_at, id, expires_at, status, ${FITS} AS fits FROM job_done AS job
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
  const either = EITHER((table) => `id = label.id${table === 'job' ? '' : ' AND expires_at = label.expires_at'}`)
  return `SELECT asked.place, label.*, found.status, coalesce(found.fits, false) AS fits FROM ${ASKED} CROSS JOIN LATERAL (
    SELECT created_at, job_id AS id, expires_at FROM job_label
    WHERE account_id = asked.account AND key = asked.first AND value = asked.second
      AND ${within(direction, 'created_at', 'job_id')}) AS label
    LEFT JOIN LATERAL (${either}) AS found ON true ${inOrder('label.id', direction)}`
}

/** An id begins with its time, so the order of ids is nearly that of creation; a range of them is small and sorted whole. */
function idSql(direction: SearchOrder): string {
  const either = EITHER(
    () => 'id BETWEEN asked.first::uuid AND asked.second::uuid AND (:scope::text IS NULL OR account_id = :scope)',
  )
  return `SELECT asked.place, found.* FROM ${ASKED} CROSS JOIN LATERAL (
    SELECT * FROM (SELECT * FROM (${either}) AS both_kinds LIMIT 5000) AS named WHERE ${within(direction)}) AS found
    ${inOrder('found.id', direction)}`
}

type Statements = Readonly<Partial<Record<SearchRange['by'], Query<PlacedEntry>>>>

/** `word`: what tells the statements of a scope from those of the other. */
function prepare(word: string, conditions: Readonly<Record<string, string>>, direction: SearchOrder): Statements {
  const made = (by: string, sql: string) => query(`search.${word}${by}_${direction}`, entry, postgresOnly(sql))
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
function rangesOf({ by, accountId }: SearchRange, direction: SearchOrder): Query<PlacedEntry> | null {
  return (accountId === null ? SERVICE_RANGES : ACCOUNT_RANGES)[direction][by] ?? null
}

const ACCOUNT_RANGES = { newest: prepare('', ofAccount, 'newest'), oldest: prepare('', ofAccount, 'oldest') }
const SERVICE_RANGES = {
  newest: prepare('all_', SERVICE_CONDITIONS, 'newest'),
  oldest: prepare('all_', SERVICE_CONDITIONS, 'oldest'),
}

// Every row fits. Held jobs are few at any time, so without those that wait they are read
// and then sorted.
function liveSql(direction: SearchOrder, owner: string, only: string): string {
  const columns = '0 AS place, created_at, id, expires_at, status, true AS fits'
  return `SELECT ${columns} FROM (
    SELECT * FROM job WHERE ${owner} AND ${LIVE_FITS} AND (:text::text IS NULL OR recipe = ANY(:textRecipes::text[])
      OR strpos(lower(title), lower(:text)) > 0) ${only}) AS job WHERE ${within(direction)}`
}

const HELD = `AND status IN ('running', 'canceling') OFFSET 0`

function prepareLive(word: string, owner: string) {
  const made = (direction: SearchOrder) => ({
    all: query(`search.${word}live_${direction}`, entry, postgresOnly(liveSql(direction, owner, ''))),
    held: query(`search.${word}held_${direction}`, entry, postgresOnly(liveSql(direction, owner, HELD))),
  })
  return { newest: made('newest'), oldest: made('oldest') }
}

const LIVE = {
  account: prepareLive('', 'account_id = :scope'),
  service: prepareLive('all_', 'true'),
}

/** The questions of a plan, and where its walks begin. */
function toValues({ scope, filter, behind, now }: AskedSearch, questions: SearchPlan['questions']): Values {
  const { statuses, engine, pool, labels, recipes, outputs, node, code } = questions
  const [behindAt, behindId] = behind
  return {
    ...{ scope, statuses, engine, pool, recipes, outputs, node, code, now, behindAt, behindId },
    'labels.key': labels?.map(([key]) => key) ?? null,
    'labels.value': labels?.map(([, value]) => value) ?? null,
    since: filter.since ?? Number.MIN_SAFE_INTEGER,
    until: filter.until ?? Number.MAX_SAFE_INTEGER,
  }
}

interface Walking {
  readonly asked: Asked<PlacedEntry[]>
  readonly length: number
}

/** Ranges of one kind are walked by one statement. */
function walkRanges(asked: AskedSearch): Walking[] {
  const { plan, limit } = asked
  const kinds = Map.groupBy(plan.ranges, (range) => rangesOf(range, asked.order))
  return [...kinds].flatMap(([wanted, ranges]) => {
    const [first] = ranges
    if (wanted === null || first === undefined) return []
    const length = Math.max(asked.minWalk ?? 0, toWalkLength(plan, first, limit))
    // A range of outputs answers for the type by itself.
    const isAnswered = plan.questions.node === null && ranges.every(({ by }) => by === 'outputs')
    const questions = isAnswered ? { ...plan.questions, outputs: null } : plan.questions
    const values = {
      firsts: ranges.map(({ values: [value = ''] }) => String(value)),
      seconds: ranges.map(({ values: [, value] }) => value ?? ''),
      accounts: ranges.map(({ accountId }) => accountId ?? ''),
    }
    return [{ asked: all(wanted, { ...toValues(asked, questions), ...values, limit: length }), length }]
  })
}

/** Live jobs have no code, and labels and ids find them as they find the others. */
function walkLive(asked: AskedSearch): Walking[] {
  const { scope, filter, plan, order, limit, recipes, textRecipes } = asked
  const live = (filter.statuses ?? JOB_STATUSES).filter((status) => !isTerminal(status))
  // One that waits has made nothing.
  const statuses = filter.outputs === null ? live : live.filter((status) => status !== 'queued')
  const isFoundOtherwise = filter.text === null && plan.ranges.some(({ by }) => by === 'label')
  if (statuses.length === 0 || filter.code !== null || isFoundOtherwise || recipes?.length === 0) return []
  const { type: outputs = null, nodeId: node = null } = filter.outputs ?? {}
  const labels = Object.entries(filter.metadata)
  const questions = {
    ...{ statuses, engine: filter.engine, pool: filter.pool, recipes, code: null, outputs, node },
    labels: labels.length === 0 ? null : labels,
  }
  const wanted = LIVE[scope === null ? 'service' : 'account'][order][statuses.includes('queued') ? 'all' : 'held']
  const values = { ...toValues(asked, questions), text: filter.text, textRecipes, limit: limit + 1 }
  return [{ asked: all(wanted, values), length: limit + 1 }]
}

function* walkAll(asked: AskedSearch): Steps<Walk<SearchEntry>[]> {
  const walking = [...walkRanges(asked), ...walkLive(asked)]
  const found = yield* together(...walking.map((each) => each.asked))
  return found.flatMap((entries, index) => {
    const length = walking[index]?.length ?? 0
    return [...Map.groupBy(entries, ({ place }) => place).values()].map((walked): Walk<SearchEntry> => {
      const last = walked.at(-1)
      return {
        entries: walked.filter(({ fits }) => fits),
        cutAt: walked.length >= length && last !== undefined ? keyOf(last) : null,
      }
    })
  })
}

export const summarySteps = defineSummaries({ dialect: 'postgres', walkAll })
