/** Jobs in short on SQLite, as the main thread sees them. */
import { readOrigin } from '../../../../domain/jobs/submit/job-origin.ts'
import type {
  SummaryFilter,
  SummaryPage,
  SummaryQuery,
  SummaryScope,
  SummaryStore,
} from '../../../../domain/jobs/summaries/summary-store.ts'
import { toAttempts } from '../../rows/jobs/attempt-fields.ts'
import { toOutput } from '../../rows/jobs/job-row.ts'
import { toQueueReading } from '../../rows/jobs/queue-rows.ts'
import { toSummary } from '../../rows/jobs/summary-row.ts'
import type { PageKey } from '../../search/merge-walks.ts'
import { AFTER_NONE, BEFORE_NONE, type StoredFilter } from '../operations/search/search-jobs.ts'
import { inSlices, type StoreChannels } from './store-channels.ts'

// A filter that hardly fits ends its page early; whoever wants more asks for the next one.
const MAX_ROUNDS = 10

export function createSummaryStore({ write, read }: StoreChannels): SummaryStore {
  async function search(scope: SummaryScope, query: SummaryQuery): Promise<SummaryPage> {
    const { order, limit, now } = query
    const filter = toStoredFilter(query.filter)
    const summaries: SummaryPage['summaries'][number][] = []
    let after = toKey(query)
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      const left = limit - summaries.length
      const answer = await read.call('searchJobs', { scope, filter, order, limit: left, after, now: now.getTime() })
      summaries.push(...answer.summaries.map(toSummary))
      if (answer.resumeAfter === null) return { summaries, next: null }
      after = answer.resumeAfter
      if (summaries.length >= limit) break
    }
    const [createdAt, id] = after
    return { summaries, next: { createdAt: new Date(createdAt), id } }
  }

  return {
    search,
    async findMany(scope, jobIds, now) {
      const found = await read.call('findSummaries', { scope, jobIds, now: now.getTime() })
      return found.map(toSummary)
    },
    async findDetails(accountId, jobId, now) {
      const found = await read.call('findDetails', { accountId, jobId, now: now.getTime() })
      if (found === null) return null
      const [summary, attempts, terms, held, origin, batchId] = found
      return {
        ...{ summary: toSummary(summary), attempts: toAttempts(attempts), terms, held },
        ...{ origin: readOrigin(origin), batchId },
      }
    },
    async findOutputs(accountId, jobs) {
      const found = await read.call('findOutputs', { accountId, jobIds: jobs.map(({ id }) => id) })
      return new Map(found.map(([id, outputs]) => [id, outputs.map(toOutput)]))
    },
    async readQueue(accountId, pool) {
      return toQueueReading(await read.call('readQueue', { accountId, pool }))
    },
    count: (scope, filter, now) =>
      read.call('countJobs', { scope, filter: toStoredFilter(filter), now: now.getTime() }),
    countEnded: (from, to) => read.call('countEnded', { from: from.getTime(), to: to.getTime() }),
    sweepRecipes: (now, limit) =>
      inSlices(limit, (sliceLimit) => write.call('sweepRecipes', { now: now.getTime(), limit: sliceLimit })),
  }
}

function toKey({ after, order }: SummaryQuery): PageKey {
  if (after !== null) return [after.createdAt.getTime(), after.id]
  return order === 'newest' ? BEFORE_NONE : AFTER_NONE
}

function toStoredFilter(filter: SummaryFilter): StoredFilter {
  return {
    ...filter,
    since: filter.since?.getTime() ?? Number.MIN_SAFE_INTEGER,
    until: filter.until?.getTime() ?? Number.MAX_SAFE_INTEGER,
  }
}
