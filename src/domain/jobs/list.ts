/** A page of an account's jobs, newest first. The opaque cursor text is the surface's business. */
import type { Clock } from '../../lib/clock.ts'
import type { Job } from './job.ts'
import type { JobStore } from './job-store.ts'
import type { JobStatus } from './transitions.ts'

export interface JobCursor {
  readonly createdAt: Date
  readonly id: string
}

export interface ListRequest {
  /** Jobs of this pool only; left out or null: of every pool. */
  readonly pool?: string | null
  /** null: every status. */
  readonly statuses: readonly JobStatus[] | null
  readonly metadata: Readonly<Record<string, string>>
  readonly limit: number
  readonly cursor: JobCursor | null
}

export interface JobPage {
  readonly jobs: readonly Job[]
  /** null on the last page. */
  readonly next: JobCursor | null
}

export type ListJobs = (accountId: string, request: ListRequest) => Promise<JobPage>

export interface ListDeps {
  readonly store: Pick<JobStore, 'list'>
  readonly clock: Clock
}

export function createListJobs({ store, clock }: ListDeps): ListJobs {
  return async function listJobs(accountId, { pool = null, statuses, metadata, limit, cursor }) {
    const found = await store.list(accountId, { pool, statuses, metadata, limit, after: cursor, now: clock.now() })
    // The store looks one job further than asked: its presence is the only proof of another page.
    const jobs = found.slice(0, limit)
    const last = jobs.at(-1)
    const next = found.length > limit && last !== undefined ? { createdAt: last.createdAt, id: last.id } : null
    return { jobs, next }
  }
}
