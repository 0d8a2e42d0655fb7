/** A page of the jobs that fit a filter, and how many fit. Live and ended jobs are found by statements of their own and merged. */
import type {
  StatusCounts,
  SummaryFilter,
  SummaryPage,
  SummaryQuery,
} from '../../../../../domain/jobs/summaries/summary-store.ts'
import { isTerminal, JOB_STATUSES, type JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { toSummary } from '../../../rows/summary-row.ts'
import { mergeWalks, type PageKey, type Walk } from '../../../search/merge-walks.ts'
import {
  type FoundTerms,
  isSelective,
  type SearchPlan,
  type SearchRange,
  toSearchPlan,
  toWalkLength,
} from '../../../search/search-plan.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { findDatedSummaries } from './find-summaries.ts'
import { type EntryRow, LIVE, RANGES, type SearchOrder } from './search-statements.ts'
import { findTerms } from './search-terms.ts'

const BEFORE_NONE: PageKey = [Number.MAX_SAFE_INTEGER, 'ffffffff-ffff-ffff-ffff-ffffffffffff']
const LOWEST_ID = '00000000-0000-0000-0000-000000000000'
const AFTER_NONE: PageKey = [Number.MIN_SAFE_INTEGER, LOWEST_ID]

// A filter that hardly fits ends its page early; whoever wants more asks for the next one.
const MAX_ROUNDS = 10

interface Asked {
  readonly accountId: string
  readonly filter: SummaryFilter
  readonly found: FoundTerms
  readonly plan: SearchPlan
  readonly order: SearchOrder
  readonly behind: PageKey
  readonly limit: number
  /** Walks are at least this long. */
  readonly minWalk?: number
  readonly now: number
}

const isEngineIndexed = () => true

export async function searchJobs(read: Queryable, accountId: string, query: SummaryQuery): Promise<SummaryPage> {
  const { filter, order, limit, after } = query
  const terms = await findTerms(read, accountId, filter)
  const plan = toSearchPlan(filter, terms, { isEngineIndexed })
  const now = query.now.getTime()
  const entries: EntryRow[] = []
  let behind: PageKey | null = after === null ? toStart(filter, order) : toKey(after)
  for (let round = 0; round < MAX_ROUNDS && behind !== null && entries.length < limit; round += 1) {
    const left = limit - entries.length
    const walks = await walkAll(read, { accountId, filter, found: terms, plan, order, behind, limit: left, now })
    const page = mergeWalks(walks, { order, limit: left, keyOf })
    entries.push(...page.entries)
    behind = page.resumeAfter
  }
  const dated = entries.map(([, , id, expiresAt]) => ({ id, expiresAt }))
  const found = await findDatedSummaries(read, accountId, dated, now)
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
  const kinds = Map.groupBy(plan.ranges, ({ by }) => by)
  const walks = [...kinds].map(async ([by, ranges]) => {
    const [first] = ranges
    const walked = first === undefined ? 0 : Math.max(asked.minWalk ?? 0, toWalkLength(plan, first, limit))
    const rows = await askRanges(read, asked, by, ranges, walked)
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

function askRanges(
  read: Queryable,
  asked: Asked,
  by: SearchRange['by'],
  ranges: readonly SearchRange[],
  limit: number,
): Promise<EntryRow[]> {
  const { questions } = asked.plan
  const { code, node } = questions
  // A range of outputs answers for the type by itself.
  const outputs = by === 'outputs' && node === null ? null : questions.outputs
  return read.all(RANGES[asked.order][by], [
    ...toQuestions(asked, { ...questions, outputs }, limit),
    ...[code, asked.now],
    ranges.map(({ values: [first] }) => String(first)),
    ranges.map(({ values: [, second] }) => second ?? ''),
  ])
}

function toQuestions(
  { accountId, filter, behind }: Asked,
  questions: SearchPlan['questions'],
  limit: number,
): unknown[] {
  const { statuses, engine, pool, labels, recipes, outputs, node } = questions
  return [
    ...[accountId, statuses, filter.since?.getTime() ?? Number.MIN_SAFE_INTEGER],
    ...[filter.until?.getTime() ?? Number.MAX_SAFE_INTEGER, ...behind, limit, engine, pool],
    ...[labels?.map(([key]) => key) ?? null, labels?.map(([, value]) => value) ?? null, recipes, outputs, node],
  ]
}

/** Live jobs have no code, and labels and ids find them as they find the others. */
async function walkLive(read: Queryable, asked: Asked): Promise<Walk<EntryRow>[]> {
  const { filter, found, order, limit } = asked
  const { recipes, text } = found
  const live = (filter.statuses ?? JOB_STATUSES).filter((status) => !isTerminal(status))
  // One that waits has made nothing.
  const statuses = filter.outputs === null ? live : live.filter((status) => status !== 'queued')
  const isFoundOtherwise = filter.text === null && Object.keys(filter.metadata).length > 0
  if (statuses.length === 0 || filter.code !== null || isFoundOtherwise || recipes?.length === 0) return []
  const { type: outputs = null, nodeId: node = null } = filter.outputs ?? {}
  const questions = { statuses, engine: filter.engine, pool: filter.pool, recipes, code: null, outputs, node }
  const labels = Object.entries(filter.metadata)
  const values = toQuestions(asked, { ...questions, labels: labels.length === 0 ? null : labels }, limit + 1)
  const held = LIVE[order][statuses.includes('queued') ? 'all' : 'held']
  const entries = await read.all(held, [...values, null, filter.text, text?.recipes ?? []])
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
  accountId: string,
  filter: SummaryFilter,
  now: Date,
): Promise<StatusCounts | null> {
  if (filter.text !== null) return null
  const all: SummaryFilter = { ...filter, statuses: null }
  const found = await findTerms(read, accountId, all)
  const plan = toSearchPlan(all, found, { isEngineIndexed })
  const isPlain = plan.ranges.every((range) => range.by === 'status' && !isSelective(plan, range))
  if (isPlain && filter.since === null && filter.until === null) return readCounters(read, accountId)
  const asked: Asked = {
    ...{ accountId, filter: all, found, plan, order: 'newest', behind: toStart(all, 'newest'), now: now.getTime() },
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

const SWEEP = statement(
  'search.sweep_recipes',
  `DELETE FROM job_recipe WHERE ctid = ANY(ARRAY(
     SELECT ctid FROM job_recipe WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)) AND expires_at <= $1`,
)

export function sweepRecipes(db: Queryable, now: Date, limit: number): Promise<number> {
  return db.run(SWEEP, [now.getTime(), limit])
}
