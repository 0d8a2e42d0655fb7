/** What can be asked of a batch: how its jobs stand, an end to all of them, and what they made. */
import type { Clock } from '../../../../lib/clock.ts'
import { isUuid } from '../../../../lib/ids.ts'
import { deploymentOf } from '../../engine/copy-pool.ts'
import { ServiceError } from '../../errors.ts'
import type { CancelJob } from '../end/cancel-job.ts'
import type { Job } from '../job.ts'
import type { ListJobs } from '../read/list-jobs.ts'
import { isTerminal } from '../transitions.ts'
import type { StoredBatch } from './batch.ts'
import type { BatchStore } from './batch-store.ts'

/** Which batches a caller can reach; `pool`: null: of every pool. */
interface BatchReach {
  readonly accountId: string
  readonly pool: string | null
}

/** Each throws not_found. */
export interface Batches {
  find(reach: BatchReach, batchId: string): Promise<StoredBatch>
  /** The batch as it is afterwards. */
  cancel(reach: BatchReach, batchId: string): Promise<StoredBatch>
  /** Its jobs with their outputs, by place. */
  jobs(reach: BatchReach, batchId: string): Promise<readonly Job[]>
}

interface BatchesDeps {
  readonly store: Pick<BatchStore, 'find'>
  readonly cancel: CancelJob
  readonly list: ListJobs
  readonly clock: Clock
}

const PAGE = 100
// The store makes few transactions of them; with a whole batch in one, a slow database would take longer than it may.
const CANCELS_AT_ONCE = 100

export function createBatches({ store, cancel, list, clock }: BatchesDeps): Batches {
  async function find({ accountId, pool }: BatchReach, batchId: string): Promise<StoredBatch> {
    const batch = isUuid(batchId) ? await store.find(accountId, batchId, clock.now()) : null
    if (batch === null || (pool !== null && deploymentOf(batch.pool) !== deploymentOf(pool)))
      throw new ServiceError('not_found', 'there is no batch with this id')
    return batch
  }

  async function cancelOne(accountId: string, jobId: string): Promise<void> {
    try {
      await cancel(accountId, jobId)
    } catch (error) {
      // It went meanwhile.
      if (!(error instanceof ServiceError) || error.refusal !== 'not_found') throw error
    }
  }

  return {
    find,
    async cancel(reach, batchId) {
      const { accountId, states } = await find(reach, batchId)
      const live = [...states].filter(([, { status }]) => !isTerminal(status) && status !== 'canceling')
      // Those that wait longest first, before a worker takes them.
      for (let from = 0; from < live.length; from += CANCELS_AT_ONCE) {
        await Promise.all(live.slice(from, from + CANCELS_AT_ONCE).map(([jobId]) => cancelOne(accountId, jobId)))
      }
      return find(reach, batchId)
    },
    async jobs(reach, batchId) {
      const { accountId } = await find(reach, batchId)
      const jobs: Job[] = []
      const filter = { batchId, statuses: null, metadata: {}, limit: PAGE }
      let page = await list(accountId, { ...filter, cursor: null })
      for (;;) {
        jobs.push(...page.jobs)
        if (page.next === null) return jobs.reverse()
        page = await list(accountId, { ...filter, cursor: page.next })
      }
    },
  }
}
