/** Jobs in short on Postgres. */
import type { SummaryStore } from '../../../../domain/jobs/summaries/summary-store.ts'
import { toAttempts } from '../../rows/attempt-fields.ts'
import { toSummary } from '../../rows/summary-row.ts'
import { findDetails, findSummaries } from '../operations/search/find-summaries.ts'
import { countJobs, searchJobs, sweepRecipes } from '../operations/search/search-jobs.ts'
import type { StoreParts } from './store-parts.ts'

export function createSummaryStore({ read, chore }: StoreParts): SummaryStore {
  return {
    search: (scope, query) => searchJobs(read, scope, query),
    findMany: async (scope, jobIds, now) => (await findSummaries(read, scope, jobIds, now.getTime())).map(toSummary),
    async findDetails(accountId, jobId, now) {
      const found = await findDetails(read, accountId, jobId, now.getTime())
      if (found === null) return null
      const [summary, attempts, terms, held] = found
      return { summary: toSummary(summary), attempts: toAttempts(attempts), terms, held }
    },
    count: (scope, filter, now) => countJobs(read, scope, filter, now),
    sweepRecipes: (now, limit) => sweepRecipes(chore, now, limit),
  }
}
