/** Which jobs something is done to: those that are named, or those that fit a filter, the oldest first and a bounded number of them. */
import type { Clock } from '../../../../lib/clock.ts'
import { invalidField } from '../../errors.ts'
import { toFailureSignature } from '../summaries/failure-signature.ts'
import type { JobSummary, SummaryFilter, SummaryPage, SummaryScope, SummaryStore } from '../summaries/summary-store.ts'
import { type BulkKind, MAX_BULK_JOBS, STATUSES_FOR } from './bulk-action.ts'

export interface BulkChoice {
  readonly kind: BulkKind
  readonly isOnlyWaiting: boolean
  /** Either these jobs, or those that fit; `like`: and failed for the same reason as this one. */
  readonly of: { readonly jobIds: readonly string[] } | { readonly filter: SummaryFilter; readonly like: string | null }
}

export type SelectedJob = Pick<JobSummary, 'id' | 'accountId' | 'outputs'>

interface Selection {
  readonly jobs: readonly SelectedJob[]
  /** There may be more that fit. */
  readonly hasMore: boolean
}

export type SelectJobs = (scope: SummaryScope, choice: BulkChoice) => Promise<Selection>

const PAGE = 500
// Pages may be short, or empty: a filter that hardly any job fits must not keep the store busy for as long as it likes.
const MAX_PAGES = 200

interface SelectDeps {
  readonly summaries: Pick<SummaryStore, 'search' | 'findMany'>
  readonly clock: Clock
}

export function createSelectJobs({ summaries, clock }: SelectDeps): SelectJobs {
  /** Throws invalid_field. */
  async function narrow(scope: SummaryScope, filter: SummaryFilter, like: string | null): Promise<SummaryFilter> {
    if (like === null) return filter
    const [found] = await summaries.findMany(scope, [like], clock.now())
    const error = found?.error ?? null
    if (error === null) throw invalidField('filter.like', 'must be the id of a job that failed')
    const statuses = filter.statuses?.filter((status) => status === 'failed') ?? (['failed'] as const)
    return { ...filter, statuses, code: error.code, failure: toFailureSignature(error) }
  }

  return async (scope, { kind, isOnlyWaiting, of }) => {
    const able = isOnlyWaiting ? (['queued'] as const) : STATUSES_FOR[kind]
    const fits = ({ outputs }: JobSummary) => kind !== 'download' || outputs > 0
    if ('jobIds' in of) {
      const found: JobSummary[] = []
      for (let at = 0; at < of.jobIds.length; at += PAGE)
        found.push(...(await summaries.findMany(scope, of.jobIds.slice(at, at + PAGE), clock.now())))
      const jobs = found.filter((job) => able.includes(job.status) && fits(job))
      return {
        jobs: jobs.toSorted((one, other) => one.createdAt.getTime() - other.createdAt.getTime()),
        hasMore: false,
      }
    }
    const filter = await narrow(scope, of.filter, of.like)
    const statuses = filter.statuses === null ? able : able.filter((status) => filter.statuses?.includes(status))
    if (statuses.length === 0) return { jobs: [], hasMore: false }
    const outputs = kind === 'download' ? ({ type: 'any', nodeId: null } as const) : filter.outputs
    const asked = { filter: { ...filter, statuses, outputs }, order: 'oldest', limit: PAGE, now: clock.now() } as const
    const jobs: SelectedJob[] = []
    let after: SummaryPage['next'] = null
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const found: SummaryPage = await summaries.search(scope, { ...asked, after })
      jobs.push(...found.summaries.filter(fits))
      after = found.next
      if (after === null || jobs.length > MAX_BULK_JOBS) break
    }
    return { jobs: jobs.slice(0, MAX_BULK_JOBS), hasMore: after !== null || jobs.length > MAX_BULK_JOBS }
  }
}
