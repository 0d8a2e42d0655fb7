/** Jobs in short on Postgres. */
import { readOrigin } from '../../../../domain/jobs/submit/job-origin.ts'
import type { SummaryStore } from '../../../../domain/jobs/summaries/summary-store.ts'
import { toAttempts } from '../../rows/jobs/attempt-fields.ts'
import { toSummary } from '../../rows/jobs/summary-row.ts'
import { findDetails, findSummaries } from '../operations/search/find-summaries.ts'
import { findListed, readQueue } from '../operations/search/read-queue.ts'
import { countEnded, countJobs, searchJobs, sweepRecipes } from '../operations/search/search-jobs.ts'
import type { StoreParts } from './store-parts.ts'

export function createSummaryStore({ read, chore }: StoreParts): SummaryStore {
  return {
    search: (scope, query) => searchJobs(read, scope, query),
    findMany: async (scope, jobIds, now) => (await findSummaries(read, scope, jobIds, now.getTime())).map(toSummary),
    async findDetails(accountId, jobId, now) {
      const found = await findDetails(read, accountId, jobId, now.getTime())
      if (found === null) return null
      const [summary, attempts, terms, held, origin, batchId] = found
      return {
        ...{ summary: toSummary(summary), attempts: toAttempts(attempts), terms, held },
        ...{ origin: readOrigin(origin), batchId },
      }
    },
    findOutputs: (accountId, jobs) => findListed(read, accountId, jobs),
    readQueue: (accountId, pool) => readQueue(read, accountId, pool),
    count: (scope, filter, now) => countJobs(read, scope, filter, now),
    countEnded: (from, to) => countEnded(read, from, to),
    sweepRecipes: (now, limit) => sweepRecipes(chore, now, limit),
  }
}
