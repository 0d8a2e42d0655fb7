/** A page of an account's jobs, newest first. The opaque cursor text is the surface's business. */
import type { Clock } from '../../../../lib/clock.ts'
import type { Job } from '../job.ts'
import type { JobStore, ListQuery } from '../job-store.ts'
import type { JobStatus } from '../transitions.ts'

interface JobCursor {
  readonly createdAt: Date
  readonly id: string
}

export interface ListRequest {
  /** Jobs of this pool only; left out or null: of every pool. */
  readonly pool?: string | null
  /** Jobs of this batch only; left out or null: of any, and of none. */
  readonly batchId?: string | null
  /** null: every status. */
  readonly statuses: readonly JobStatus[] | null
  readonly metadata: Readonly<Record<string, string>>
  readonly limit: number
  readonly cursor: JobCursor | null
}

interface JobPage {
  readonly jobs: readonly Job[]
  /** null on the last page. */
  readonly next: JobCursor | null
}

export type ListJobs = (accountId: string, request: ListRequest) => Promise<JobPage>

interface ListDeps {
  readonly store: Pick<JobStore, 'list'>
  readonly clock: Clock
}

// Of all jobs of a page together: each is sent with all its outputs, and a page has to stay small enough to be built and parsed.
const MAX_OUTPUTS = 10_000

export function createListJobs({ store, clock }: ListDeps): ListJobs {
  return async function listJobs(accountId, { pool = null, batchId = null, statuses, metadata, limit, cursor }) {
    const filter = { pool, batchId, statuses, metadata }
    const query = { ...filter, limit, maxOutputs: MAX_OUTPUTS, after: cursor, now: clock.now() }
    const found = await store.list(accountId, query)
    // The store returns one job more than the page holds when there is another page.
    const jobs = found.slice(0, endOfPage(found, query))
    const last = jobs.at(-1)
    const next = found.length > jobs.length && last !== undefined ? { createdAt: last.createdAt, id: last.id } : null
    return { jobs, next }
  }
}

/** How many of these jobs, in their order, make a page. */
export function endOfPage(
  jobs: readonly Job[],
  { limit, maxOutputs = Number.POSITIVE_INFINITY }: Pick<ListQuery, 'limit' | 'maxOutputs'>,
): number {
  let outputs = 0
  for (const [index, job] of jobs.entries()) {
    outputs += job.outputs.length
    if (index + 1 === limit || outputs >= maxOutputs) return index + 1
  }
  return jobs.length
}
