/**
 * A page of an account's jobs, newest first by (created at, id), gathered from parts. A store answers with less than was asked for
 * where the part would be too large, or where a filter hardly matches, and says where to go on.
 */
import type { Job } from '../../../domain/jobs/job.ts'
import type { JobStore } from '../../../domain/jobs/job-store.ts'
import { endOfPage } from '../../../domain/jobs/read/list-jobs.ts'
import { JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'
import type { PageKey } from './merge-walks.ts'

export interface PartQuery {
  readonly accountId: string
  /** null: every pool. */
  readonly pool: string | null
  readonly batchId: string | null
  readonly statuses: readonly JobStatus[]
  readonly labels: readonly (readonly [key: string, value: string])[]
  readonly limit: number
  readonly before: PageKey
  readonly now: number
}

export interface JobsPart {
  readonly jobs: readonly Job[]
  /** Where a walk that stopped early goes on; null when the page is complete, or there is nothing more. */
  readonly resumeBefore: PageKey | null
}

/** Entries of an index that one part looks at, so that a filter that hardly matches delays no other read. */
const WALKED_ENTRIES = 1_000
/** Outputs in one part: the main thread converts all of it in one go. */
export const ANSWERED_OUTPUTS = 10_000

export interface JobLists {
  /** `walked`: at most so many entries of an index are looked at. */
  readPart(query: PartQuery, walked: number): Promise<JobsPart>
}

/** Newer than every job's: ids are lower-case hex. */
const NEWEST_KEY: PageKey = [Number.MAX_SAFE_INTEGER, 'ffffffff-ffff-ffff-ffff-ffffffffffff']

/** One job more than the page has, where there is one. */
export function createListJobs({ readPart }: JobLists): JobStore['list'] {
  return async (accountId, query) => {
    const { after, statuses, pool = null, batchId = null } = query
    const labels = Object.entries(query.metadata)
    const asked = statuses === null ? JOB_STATUSES : [...new Set(statuses)]
    const now = query.now.getTime()
    const jobs: Job[] = []
    // Most walks end within a page; a filter that hardly matches goes on in longer strides.
    let walked = Math.min(WALKED_ENTRIES, 2 * query.limit)
    let before: PageKey | null = after === null ? NEWEST_KEY : [after.createdAt.getTime(), after.id]
    while (before !== null && endOfPage(jobs, query) === jobs.length) {
      const limit = query.limit + 1 - jobs.length
      const part = await readPart({ accountId, pool, batchId, statuses: asked, labels, limit, before, now }, walked)
      jobs.push(...part.jobs)
      before = part.resumeBefore
      walked = WALKED_ENTRIES
    }
    return jobs
  }
}
