/** Jobs in short on Postgres. */
import { readOrigin } from '../../../../domain/jobs/submit/job-origin.ts'
import type { SummaryStore } from '../../../../domain/jobs/summaries/summary-store.ts'
import { toAttempts } from '../../rows/attempt-fields.ts'
import { toSummary } from '../../rows/summary-row.ts'
import { findDetails, findSummaries } from '../operations/search/find-summaries.ts'
import { findListed, readQueue } from '../operations/search/read-queue.ts'
import { countJobs, searchJobs, sweepRecipes } from '../operations/search/search-jobs.ts'
import type { StoreParts } from './store-parts.ts'

export function createSummaryStore({ read, chore }: StoreParts): SummaryStore {
  return {
    search: (accountId, query) => searchJobs(read, accountId, query),
    findMany: async (accountId, jobIds, now) =>
      (await findSummaries(read, accountId, jobIds, now.getTime())).map(toSummary),
    async findDetails(accountId, jobId, now) {
      const found = await findDetails(read, accountId, jobId, now.getTime())
      if (found === null) return null
      const [summary, attempts, terms, held, origin] = found
      return {
        ...{ summary: toSummary(summary), attempts: toAttempts(attempts), terms, held },
        origin: readOrigin(origin),
      }
    },
    findOutputs: (accountId, jobs) => findListed(read, accountId, jobs),
    readQueue: (accountId, pool) => readQueue(read, accountId, pool),
    count: (accountId, filter, now) => countJobs(read, accountId, filter, now),
    sweepRecipes: (now, limit) => sweepRecipes(chore, now, limit),
  }
}
