/** Many cancels at once: of jobs that are named, or of all that fit a filter. Bounded; a caller with more jobs repeats the request. */
import type { Clock } from '../../../../lib/clock.ts'
import { isUuid } from '../../../../lib/ids.ts'
import { isJsonObject, type JsonValue } from '../../../../lib/json/lossless-json.ts'
import { invalidField, ServiceError } from '../../../domain/errors.ts'
import type {
  JobSummary,
  SummaryFilter,
  SummaryPage,
  SummaryScope,
  SummaryStore,
} from '../../../domain/jobs/summaries/summary-store.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { readFilterBody } from './job-pages.ts'

const MAX_IDS = 1000
const PAGE = 100
// Pages may be short, or empty: a filter that hardly any job fits must not keep the store busy for as long as it likes.
const MAX_PAGES = 200
const AT_ONCE = 16

interface CancelWish {
  /** null: by filter. */
  readonly ids: readonly string[] | null
  readonly filter: SummaryFilter | null
  readonly statuses: readonly JobStatus[]
  readonly isOnlyQueued: boolean
  readonly isDry: boolean
}

type Named = Pick<JobSummary, 'id' | 'accountId'>

interface FoundJobs {
  readonly jobs: readonly Named[]
  /** Whether there may be more that fit. */
  readonly hasMore: boolean
}

interface CancelDeps {
  readonly summaries: Pick<SummaryStore, 'search' | 'findMany'>
  readonly clock: Clock
  /** How many by one request. */
  readonly maxCanceled: number
}

/** How one of them is canceled: the status that it has then. Throws not_found. */
type CancelOne = (job: Named, wish: CancelWish) => Promise<{ readonly status: JobStatus }>

export function createCancelMany({ summaries, clock, maxCanceled }: CancelDeps) {
  async function findByIds(scope: SummaryScope, { ids, statuses }: CancelWish): Promise<FoundJobs> {
    const found = await summaries.findMany(scope, ids ?? [], clock.now())
    return { jobs: found.filter(({ status }) => statuses.includes(status)), hasMore: false }
  }

  async function findByFilter(scope: SummaryScope, { filter, statuses }: CancelWish): Promise<FoundJobs> {
    const asked = filter?.statuses == null ? statuses : statuses.filter((status) => filter.statuses?.includes(status))
    if (filter === null || asked.length === 0) return { jobs: [], hasMore: false }
    const jobs: Named[] = []
    let after: SummaryPage['next'] = null
    for (let page = 0; page < MAX_PAGES && jobs.length < maxCanceled; page += 1) {
      const found: SummaryPage = await summaries.search(scope, {
        ...{ filter: { ...filter, statuses: asked }, order: 'newest', limit: PAGE, after, now: clock.now() },
      })
      jobs.push(...found.summaries)
      after = found.next
      if (after === null) break
    }
    return { jobs, hasMore: after !== null }
  }

  /** One that ended or went meanwhile needs no cancel any more: what became of a job since it was found decides. */
  async function isCanceled(job: Named, wish: CancelWish, cancelOne: CancelOne): Promise<boolean> {
    try {
      const { status } = await cancelOne(job, wish)
      return status === 'canceled' || status === 'canceling'
    } catch (error) {
      if (error instanceof ServiceError && error.refusal === 'not_found') return false
      throw error
    }
  }

  /** `count`: how many were canceled, or, for a dry wish, would be. */
  return async (scope: SummaryScope, wish: CancelWish, cancelOne: CancelOne) => {
    const found = wish.filter === null ? await findByIds(scope, wish) : await findByFilter(scope, wish)
    let count = wish.isDry ? found.jobs.length : 0
    for (let at = 0; !wish.isDry && at < found.jobs.length; at += AT_ONCE) {
      const some = found.jobs.slice(at, at + AT_ONCE)
      const outcomes = await Promise.all(some.map((job) => isCanceled(job, wish, cancelOne)))
      count += outcomes.filter(Boolean).length
    }
    return { count, has_more: found.hasMore }
  }
}

export function readCancelWish(body: JsonValue): CancelWish {
  if (!isJsonObject(body)) throw new ServiceError('invalid_request', 'the body must be a JSON object')
  const { ids, filter } = body
  if ((ids === undefined) === (filter === undefined))
    throw new ServiceError('invalid_request', 'the body must have either ids or filter')
  const isOnlyQueued = readFlag(body['only_waiting'], 'only_waiting')
  return {
    ids: ids === undefined ? null : readIds(ids),
    filter: filter === undefined ? null : readFilterBody(filter),
    statuses: isOnlyQueued ? ['queued'] : ['queued', 'running'],
    isOnlyQueued,
    isDry: readFlag(body['dry_run'], 'dry_run'),
  }
}

function readFlag(value: JsonValue | undefined, field: string): boolean {
  if (value === undefined || typeof value === 'boolean') return value === true
  throw invalidField(field, 'must be true or false')
}

function readIds(value: JsonValue): string[] {
  const isList = Array.isArray(value) && value.length <= MAX_IDS && value.every((id) => typeof id === 'string')
  if (!isList) throw invalidField('ids', `must be a list of at most ${MAX_IDS} ids`)
  return (value as string[]).filter(isUuid)
}
