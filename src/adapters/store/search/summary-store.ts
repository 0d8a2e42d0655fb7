/** Jobs in short: a page of those that fit a filter, some by their ids, and how many fit. Each database walks its own indexes. */
import { toFailureSignature } from '../../../domain/jobs/summaries/failure-signature.ts'
import type {
  JobSummary,
  StatusCounts,
  SummaryFilter,
  SummaryPage,
  SummaryQuery,
  SummaryScope,
  SummaryStore,
} from '../../../domain/jobs/summaries/summary-store.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { LOOKED_AT_ENDED, READ_ENDED, READ_HELD, READ_WAITING } from '../../../domain/jobs/waits/queue-reading.ts'
import { HELD_LIMIT } from '../rows/jobs/job.ts'
import {
  all,
  chore,
  type DefinedStore,
  defineStore,
  get,
  read,
  run,
  type Steps,
  together,
} from '../statements/operation.ts'
import { both, command, query } from '../statements/statement.ts'
import { countByStatus } from '../stores/account-store.ts'
import { type Dialect, integer, named, nullable, shape, text } from '../tables/table.ts'
import { findServiceTerms, findTerms } from './find-terms.ts'
import { mergeWalks, type PageKey, type Walk } from './merge-walks.ts'
import { isPlain, type SearchPlan, toSearchPlan } from './search-plan.ts'
import { type OwnedName, toServicePlan } from './service-plan.ts'
import { suggest } from './suggestions.ts'
import { findDatedSummaries, findDetails, findListedOutputs, findSummaries } from './summary-rows.ts'

/** An entry of an index. */
export interface SearchEntry {
  readonly createdAt: number
  readonly id: string
  readonly status: JobStatus
  readonly expiresAt: number
  readonly fits: boolean
}

export type SearchOrder = SummaryQuery['order']

export interface AskedSearch {
  readonly scope: SummaryScope
  readonly filter: SummaryFilter
  readonly plan: SearchPlan
  /** Those that a live job may have; null: any. */
  readonly recipes: readonly string[] | null
  /** Those that have the text. */
  readonly textRecipes: readonly string[]
  /** Accounts whose jobs may wait. */
  readonly queues: readonly string[]
  readonly order: SearchOrder
  readonly behind: PageKey
  readonly limit: number
  /** Walks are at least this long, and no longer all together. */
  readonly minWalk?: number
  readonly now: Date
}

/** How a database finds what a plan asks for. */
interface SearchWalks {
  readonly dialect: Dialect
  walkAll(asked: AskedSearch): Steps<readonly Walk<SearchEntry>[]>
  /** By status, how many jobs an account began in this time, where the database can tell without a look at them; null: too many. */
  countBetween?(accountId: string, since: number, until: number): Steps<readonly CountedStatus[] | null>
}

export interface CountedStatus {
  readonly status: JobStatus
  readonly jobs: number
}

export function keyOf({ createdAt, id }: Pick<SearchEntry, 'createdAt' | 'id'>): PageKey {
  return [createdAt, id]
}

type Planned = Pick<AskedSearch, 'scope' | 'filter' | 'plan' | 'recipes' | 'textRecipes' | 'queues'>

function* planSearch(dialect: Dialect, scope: SummaryScope, filter: SummaryFilter): Steps<Planned> {
  if (scope !== null) {
    const found = yield* findTerms(scope, filter)
    const plan = toSearchPlan(filter, { ...found, accountId: scope })
    return { scope, filter, plan, recipes: found.recipes, textRecipes: found.text?.recipes ?? [], queues: [scope] }
  }
  const found = yield* findServiceTerms(dialect, filter)
  const nameOf = ([, recipe]: OwnedName) => recipe
  const [recipes, textRecipes] = [found.recipes?.map(nameOf) ?? null, found.text?.recipes.map(nameOf) ?? []]
  return { scope, filter, plan: toServicePlan(filter, found), recipes, textRecipes, queues: found.waiting }
}

// Ids are lower-case hex.
const HIGHEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
const LOWEST_ID = '00000000-0000-0000-0000-000000000000'

/** Where the walks begin: a database that is given two bounds on the same side may begin at the wider one. */
function toStart({ since, until }: SummaryFilter, order: SearchOrder): PageKey {
  if (order === 'newest') return until === null ? [Number.MAX_SAFE_INTEGER, HIGHEST_ID] : [until.getTime(), LOWEST_ID]
  return since === null ? [Number.MIN_SAFE_INTEGER, LOWEST_ID] : [since.getTime(), LOWEST_ID]
}

const COUNTERS = query(
  'search.counters',
  shape({
    ...{
      queued: integer(),
      running: integer(),
      succeeded: integer(),
      failed: integer(),
      canceled: integer(),
      expired: integer(),
    },
    canceling: integer(),
  }),
  both({
    sqlite: `SELECT queued, running, succeeded, failed, canceled, expired, (
        SELECT count(*) FROM job INDEXED BY job_listing WHERE account_id = account.id AND status = 'canceling') AS canceling
      FROM account WHERE id = :accountId`,
    postgres: `SELECT account.submitted - load.started AS queued, load.running, load.succeeded, load.failed, load.canceled, load.expired, (
        SELECT count(*) FROM job WHERE account_id = :accountId AND status IN ('running', 'canceling') AND status = 'canceling') AS canceling
      FROM account JOIN account_load AS load ON load.account_id = account.id WHERE account.id = :accountId`,
  }),
)

function noCounts(): Record<JobStatus, number> {
  return { queued: 0, running: 0, canceling: 0, succeeded: 0, failed: 0, canceled: 0, expired: 0 }
}

/** An account keeps these with every move of a job. */
function* readCounters(accountId: string): Steps<StatusCounts> {
  const found = yield* get(COUNTERS, { accountId })
  return found === undefined ? noCounts() : { ...found, running: found.running - found.canceling }
}

const COUNTED_JOBS = 3000

function* count(walks: SearchWalks, scope: SummaryScope, filter: SummaryFilter, now: Date): Steps<StatusCounts | null> {
  // Ranges of a text may share jobs.
  if (filter.text !== null) return null
  const planned = yield* planSearch(walks.dialect, scope, { ...filter, statuses: null })
  if (isPlain(planned.plan) && filter.since === null && filter.until === null)
    return yield* scope === null ? countByStatus() : readCounters(scope)
  if (isPlain(planned.plan) && scope !== null && walks.countBetween !== undefined) {
    const { since, until } = filter
    const counted = yield* walks.countBetween(scope, since?.getTime() ?? 0, until?.getTime() ?? Number.MAX_SAFE_INTEGER)
    return counted && { ...noCounts(), ...Object.fromEntries(counted.map(({ status, jobs }) => [status, jobs])) }
  }
  const behind = toStart(filter, 'newest')
  const [limit, minWalk] = [COUNTED_JOBS, COUNTED_JOBS]
  const walked = yield* walks.walkAll({ ...planned, order: 'newest', behind, limit, minWalk, now })
  const entries = walked.flatMap((walk) => walk.entries)
  if (walked.some(({ cutAt }) => cutAt !== null) || entries.length >= COUNTED_JOBS) return null
  const counts = noCounts()
  for (const { status } of entries) counts[status] += 1
  return counts
}

const ENDED_COUNTS = query(
  'search.ended',
  shape({ status: text<JobStatus>(), jobs: integer() }),
  both({
    sqlite: `
      SELECT job.status, count(*) AS jobs FROM account CROSS JOIN job INDEXED BY job_ended ON job.account_id = account.id
      WHERE job.status IN ('succeeded', 'failed', 'canceled') AND job.started_at IS NOT NULL
        AND job.completed_at >= :from AND job.completed_at < :to GROUP BY job.status
      UNION ALL
      SELECT 'expired', count(*) FROM job INDEXED BY job_grace
      WHERE status = 'expired' AND completed_at >= :from AND completed_at < :to`,
    postgres: `
      SELECT status, count(*) AS jobs FROM job_done
      WHERE completed_at >= :from AND completed_at < :to AND (started_at IS NOT NULL OR status = 'expired') GROUP BY status`,
  }),
)

const IN_QUEUE = 'account_id = :accountId AND pool = :pool'
const WAITING = query(
  'waits.waiting',
  shape({ id: text(), recipe: nullable(text()), priority: integer() }),
  ({
    either,
  }) => `SELECT id, recipe, priority FROM job ${either('INDEXED BY job_queue', '')} WHERE status = 'queued' AND priority > ${HELD_LIMIT} AND ${IN_QUEUE}
    ORDER BY priority DESC, seq LIMIT ${READ_WAITING}`,
)
const HELD = query(
  'waits.held',
  shape({ recipe: nullable(text()), startedAtMs: named('started_at', integer()) }),
  ({ either }) => `SELECT recipe, started_at FROM job ${either('INDEXED BY job_listing', '')}
    WHERE ${IN_QUEUE} AND status IN ('running', 'canceling') LIMIT ${READ_HELD}`,
)
const LATEST = query(
  'waits.ended',
  shape({
    ...{ recipe: nullable(text()), priority: integer(), seq: integer(), createdAtMs: named('created_at', integer()) },
    ...{ startedAtMs: named('started_at', integer()), completedAtMs: named('completed_at', integer()) },
  }),
  ({ either }) => `
    SELECT recipe, priority, seq, created_at, started_at, completed_at FROM (
      SELECT * FROM ${either(
        `job INDEXED BY job_ended WHERE status IN ('succeeded', 'failed', 'canceled') AND started_at IS NOT NULL AND`,
        'job_done WHERE',
      )} account_id = :accountId ORDER BY completed_at DESC, seq DESC LIMIT ${LOOKED_AT_ENDED}) AS latest
    WHERE pool = :pool AND attempt = 1 AND started_at IS NOT NULL LIMIT ${READ_ENDED}`,
)
const SWEEP = command(
  'search.sweep_recipes',
  both({
    sqlite: `DELETE FROM job_recipe WHERE (account_id, recipe) IN (
      SELECT account_id, recipe FROM job_recipe WHERE expires_at <= :now LIMIT :limit)`,
    postgres: `DELETE FROM job_recipe WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM job_recipe WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit)) AND expires_at <= :now`,
  }),
)

interface SummarySteps extends Omit<SummaryStore, 'search'> {
  /** A round of a search: as much of a page as its walks give. */
  searchSome(scope: SummaryScope, query: SummaryQuery): Promise<SummaryPage>
}

export function defineSummaries(walks: SearchWalks): DefinedStore<SummarySteps> {
  return defineStore<SummarySteps>('summaries', {
    searchSome: read(function* (scope, { filter, order, limit, after, now }) {
      const planned = yield* planSearch(walks.dialect, scope, filter)
      const behind =
        after === null ? toStart(filter, order) : keyOf({ createdAt: after.createdAt.getTime(), id: after.id })
      const page = mergeWalks(yield* walks.walkAll({ ...planned, order, behind, limit, now }), { order, limit, keyOf })
      const summaries = yield* findDatedSummaries(scope, page.entries, now)
      const [createdAt, id] = page.resumeAfter ?? [0, '']
      return { summaries, next: page.resumeAfter === null ? null : { createdAt: new Date(createdAt), id } }
    }),
    findMany: read(findSummaries),
    findDetails: read(findDetails),
    findOutputs: read(findListedOutputs),
    readQueue: read(function* (accountId, pool) {
      const asked = { accountId, pool }
      const [waiting, held, ended] = yield* together(all(WAITING, asked), all(HELD, asked), all(LATEST, asked))
      return { waiting, held, ended }
    }),
    count: read((scope, filter, now) => count(walks, scope, filter, now)),
    countEnded: read(function* (from, to) {
      const ended = yield* all(ENDED_COUNTS, { from, to })
      return { ...noCounts(), ...Object.fromEntries(ended.map(({ status, jobs }) => [status, jobs])) }
    }),
    suggest: read(suggest),
    sweepRecipes: chore(
      function* (now, limit) {
        return yield* run(SWEEP, { now, limit })
      },
      { isEssential: true },
    ),
  })
}

// A filter that hardly fits ends its page early; whoever wants more asks for the next one.
const MAX_ROUNDS = 10
const COUNTED_PAGE = 500

/** Only a failed job has a signature, which no index knows: those with the code are looked at one by one. */
function toLookedAt(filter: SummaryFilter): SummaryFilter {
  if (filter.failure === null) return filter
  return { ...filter, statuses: filter.statuses?.filter((status) => status === 'failed') ?? ['failed'] }
}

function hasFailure({ failure }: SummaryFilter, { error }: JobSummary): boolean {
  return failure === null || (error !== null && toFailureSignature(error) === failure)
}

export function createSummaryStore({ searchSome, count, ...steps }: SummarySteps): SummaryStore {
  async function search(scope: SummaryScope, query: SummaryQuery): Promise<SummaryPage> {
    const summaries: JobSummary[] = []
    const filter = toLookedAt(query.filter)
    let next: SummaryPage['next'] = query.after
    for (let round = 0; round < MAX_ROUNDS && summaries.length < query.limit; round += 1) {
      const page = await searchSome(scope, { ...query, filter, after: next, limit: query.limit - summaries.length })
      summaries.push(...page.summaries.filter((summary) => hasFailure(filter, summary)))
      next = page.next
      if (next === null) break
    }
    return { summaries, next }
  }

  async function countFailures(scope: SummaryScope, filter: SummaryFilter, now: Date): Promise<StatusCounts | null> {
    const asked = {
      filter: toLookedAt({ ...filter, statuses: null }),
      order: 'newest',
      limit: COUNTED_PAGE,
      now,
    } as const
    let [failed, after]: [number, SummaryPage['next']] = [0, null]
    for (let looked = 0; looked < COUNTED_JOBS; looked += COUNTED_PAGE) {
      const page = await searchSome(scope, { ...asked, after })
      failed += page.summaries.filter((summary) => hasFailure(filter, summary)).length
      after = page.next
      if (after === null) return { ...noCounts(), failed }
    }
    return null
  }

  return {
    ...steps,
    search,
    count: (scope, filter, now) =>
      filter.failure === null ? count(scope, filter, now) : countFailures(scope, filter, now),
  }
}
