/** A page of the jobs that fit a filter, and how many fit. Live and ended jobs are found by statements of their own and merged. */
import type {
  StatusCounts,
  SummaryFilter,
  SummaryPage,
  SummaryQuery,
  SummaryScope,
} from '../../../../../domain/jobs/summaries/summary-store.ts'
import { isTerminal, JOB_STATUSES, type JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { toSummary } from '../../../rows/jobs/summary-row.ts'
import { mergeWalks, type PageKey, type Walk } from '../../../search/merge-walks.ts'
import { isPlain, type SearchPlan, type SearchRange, toSearchPlan, toWalkLength } from '../../../search/search-plan.ts'
import { type OwnedName, toServicePlan } from '../../../search/service-plan.ts'
import { type Queryable, type Statement, statement } from '../../database/statement.ts'
import { countByStatus } from '../accounts/account-counters.ts'
import { findDatedSummaries } from './find-summaries.ts'
import { type EntryRow, LIVE, rangesOf, type SearchOrder } from './search-statements.ts'
import { findTerms } from './search-terms.ts'
import { findServiceTerms } from './service-terms.ts'

const BEFORE_NONE: PageKey = [Number.MAX_SAFE_INTEGER, 'ffffffff-ffff-ffff-ffff-ffffffffffff']
const LOWEST_ID = '00000000-0000-0000-0000-000000000000'
const AFTER_NONE: PageKey = [Number.MIN_SAFE_INTEGER, LOWEST_ID]

// A filter with few matches ends its page early; the caller continues with the next page.
const MAX_ROUNDS = 10

interface Asked extends Planned {
  readonly scope: SummaryScope
  readonly filter: SummaryFilter
  readonly order: SearchOrder
  readonly behind: PageKey
  readonly limit: number
  /** Walks are at least this long. */
  readonly minWalk?: number
  readonly now: number
}

interface Planned {
  readonly plan: SearchPlan
  /** Those that a live job may have; null: any. */
  readonly recipes: readonly string[] | null
  /** Those that have the text. */
  readonly textRecipes: readonly string[]
}

async function planSearch(read: Queryable, scope: SummaryScope, filter: SummaryFilter): Promise<Planned> {
  if (scope !== null) {
    const found = await findTerms(read, scope, filter)
    const plan = toSearchPlan(filter, { ...found, accountId: scope })
    return { plan, recipes: found.recipes, textRecipes: found.text?.recipes ?? [] }
  }
  const found = await findServiceTerms(read, filter)
  const nameOf = ([, recipe]: OwnedName) => recipe
  const plan = toServicePlan(filter, found)
  return { plan, recipes: found.recipes?.map(nameOf) ?? null, textRecipes: found.text?.recipes.map(nameOf) ?? [] }
}

export async function searchJobs(read: Queryable, scope: SummaryScope, query: SummaryQuery): Promise<SummaryPage> {
  const { filter, order, limit, after } = query
  const planned = await planSearch(read, scope, filter)
  const now = query.now.getTime()
  const entries: EntryRow[] = []
  let behind: PageKey | null = after === null ? toStart(filter, order) : toKey(after)
  for (let round = 0; round < MAX_ROUNDS && behind !== null && entries.length < limit; round += 1) {
    const left = limit - entries.length
    const walks = await walkAll(read, { scope, filter, ...planned, order, behind, limit: left, now })
    const page = mergeWalks(walks, { order, limit: left, keyOf })
    entries.push(...page.entries)
    behind = page.resumeAfter
  }
  const dated = entries.map(([, , id, expiresAt]) => ({ id, expiresAt }))
  const found = await findDatedSummaries(read, scope, dated, now)
  const stored = new Map(found.map((summary) => [summary[0][1], summary]))
  const summaries = dated
    .map(({ id }) => stored.get(id))
    .filter((summary) => summary !== undefined)
    .map(toSummary)
  return { summaries, next: behind === null ? null : { createdAt: new Date(behind[0]), id: behind[1] } }
}

/** Where the walks begin: a server that is given two bounds on the same side may begin at the wider one. */
function toStart({ since, until }: SummaryFilter, order: SearchOrder): PageKey {
  if (order === 'newest') return until === null ? BEFORE_NONE : [until.getTime(), LOWEST_ID]
  return since === null ? AFTER_NONE : [since.getTime(), LOWEST_ID]
}

function toKey({ createdAt, id }: NonNullable<SummaryQuery['after']>): PageKey {
  return [createdAt.getTime(), id]
}

function keyOf([, createdAt, id]: EntryRow): PageKey {
  return [createdAt, id]
}

async function walkAll(read: Queryable, asked: Asked): Promise<Walk<EntryRow>[]> {
  const { plan, limit } = asked
  const kinds = Map.groupBy(plan.ranges, (range) => rangesOf(range, asked.order))
  const walks = [...kinds].map(async ([wanted, ranges]) => {
    const [first] = ranges
    if (wanted === null || first === undefined) return []
    const walked = Math.max(asked.minWalk ?? 0, toWalkLength(plan, first, limit))
    const rows = await askRanges(read, asked, { wanted, ranges, walked })
    const byPlace = Map.groupBy(rows, ([place]) => place)
    return [...byPlace.values()].map((entries) => toWalk(entries, walked))
  })
  return [...(await Promise.all([...walks, walkLive(read, asked)])).flat()]
}

function toWalk(entries: readonly EntryRow[], walked: number): Walk<EntryRow> {
  const last = entries.at(-1)
  const isCut = entries.length >= walked && last !== undefined
  return { entries: entries.filter(([, , , , , fits]) => fits), cutAt: isCut ? keyOf(last) : null }
}

interface AskedRanges {
  readonly wanted: Statement<EntryRow>
  readonly ranges: readonly SearchRange[]
  readonly walked: number
}

function askRanges(read: Queryable, asked: Asked, { wanted, ranges, walked }: AskedRanges): Promise<EntryRow[]> {
  const { questions } = asked.plan
  const { code, node } = questions
  // A range of outputs answers for the type by itself.
  const isAnswered = node === null && ranges.every(({ by }) => by === 'outputs')
  return read.all(wanted, [
    ...toQuestions(asked, isAnswered ? { ...questions, outputs: null } : questions, walked),
    ...[code, asked.now],
    ranges.map(({ values: [first = ''] }) => String(first)),
    ranges.map(({ values: [, second] }) => second ?? ''),
    ranges.map(({ accountId }) => accountId ?? ''),
  ])
}

function toQuestions({ scope, filter, behind }: Asked, questions: SearchPlan['questions'], limit: number): unknown[] {
  const { statuses, engine, pool, labels, recipes, outputs, node } = questions
  return [
    ...[scope, statuses, filter.since?.getTime() ?? Number.MIN_SAFE_INTEGER],
    ...[filter.until?.getTime() ?? Number.MAX_SAFE_INTEGER, ...behind, limit, engine, pool],
    ...[labels?.map(([key]) => key) ?? null, labels?.map(([, value]) => value) ?? null, recipes, outputs, node],
  ]
}

/** Live jobs have no code, and labels and ids find them as they find the others. */
async function walkLive(read: Queryable, asked: Asked): Promise<Walk<EntryRow>[]> {
  const { scope, filter, plan, order, limit, recipes, textRecipes } = asked
  const live = (filter.statuses ?? JOB_STATUSES).filter((status) => !isTerminal(status))
  // One that waits has made nothing.
  const statuses = filter.outputs === null ? live : live.filter((status) => status !== 'queued')
  const isFoundOtherwise = filter.text === null && plan.ranges.some(({ by }) => by === 'label')
  if (statuses.length === 0 || filter.code !== null || isFoundOtherwise || recipes?.length === 0) return []
  const { type: outputs = null, nodeId: node = null } = filter.outputs ?? {}
  const questions = { statuses, engine: filter.engine, pool: filter.pool, recipes, code: null, outputs, node }
  const labels = Object.entries(filter.metadata)
  const values = toQuestions(asked, { ...questions, labels: labels.length === 0 ? null : labels }, limit + 1)
  const wanted = LIVE[scope === null ? 'service' : 'account'][order]
  const held = wanted[statuses.includes('queued') ? 'all' : 'held']
  const entries = await read.all(held, [...values, null, filter.text, textRecipes])
  const last = entries.at(-1)
  return [{ entries, cutAt: entries.length > limit && last !== undefined ? keyOf(last) : null }]
}

const COUNTERS = statement<
  [queued: number, held: number, succeeded: number, failed: number, canceled: number, expired: number]
>(
  'search.counters',
  `SELECT account.submitted - load.started, load.running, load.succeeded, load.failed, load.canceled, load.expired
   FROM account JOIN account_load AS load ON load.account_id = account.id WHERE account.id = $1`,
)
const CANCELING = statement<[number]>(
  'search.canceling',
  `SELECT count(*) FROM job WHERE account_id = $1 AND status IN ('running', 'canceling') AND status = 'canceling'`,
)

const COUNTED_JOBS = 3000

/** null: more than are counted for one question. */
export async function countJobs(
  read: Queryable,
  scope: SummaryScope,
  filter: SummaryFilter,
  now: Date,
): Promise<StatusCounts | null> {
  if (filter.text !== null) return null
  const all: SummaryFilter = { ...filter, statuses: null }
  const planned = await planSearch(read, scope, all)
  if (isPlain(planned.plan) && filter.since === null && filter.until === null)
    return scope === null ? countByStatus(read) : readCounters(read, scope)
  const asked: Asked = {
    ...{ scope, filter: all, ...planned, order: 'newest', behind: toStart(all, 'newest'), now: now.getTime() },
    ...{ limit: COUNTED_JOBS, minWalk: COUNTED_JOBS },
  }
  const walks = await walkAll(read, asked)
  const entries = walks.flatMap((walk) => walk.entries)
  if (walks.some(({ cutAt }) => cutAt !== null) || entries.length >= COUNTED_JOBS) return null
  const counts = noCounts()
  for (const [, , , , status] of entries) counts[status] += 1
  return counts
}

async function readCounters(read: Queryable, accountId: string): Promise<StatusCounts> {
  const [counters, canceling] = await Promise.all([read.get(COUNTERS, [accountId]), read.get(CANCELING, [accountId])])
  if (counters === undefined) return noCounts()
  const [queued, held, succeeded, failed, canceled, expired] = counters
  const [ending] = canceling ?? [0]
  return { queued, running: held - ending, canceling: ending, succeeded, failed, canceled, expired }
}

function noCounts(): Record<JobStatus, number> {
  return { queued: 0, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 }
}

const ENDED = statement<[status: JobStatus, count: number]>(
  'search.ended',
  `SELECT status, count(*) FROM job_done
   WHERE completed_at >= $1 AND completed_at < $2 AND (started_at IS NOT NULL OR status = 'expired') GROUP BY status`,
)

export async function countEnded(read: Queryable, from: Date, to: Date): Promise<StatusCounts> {
  return { ...noCounts(), ...Object.fromEntries(await read.all(ENDED, [from.getTime(), to.getTime()])) }
}

const SWEEP = statement(
  'search.sweep_recipes',
  `DELETE FROM job_recipe WHERE ctid = ANY(ARRAY(
     SELECT ctid FROM job_recipe WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)) AND expires_at <= $1`,
)

export function sweepRecipes(db: Queryable, now: Date, limit: number): Promise<number> {
  return db.run(SWEEP, [now.getTime(), limit])
}
