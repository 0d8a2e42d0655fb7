/**
 * Jobs as an address shows them: the address of a deployment only its own, any other address all of the account's. A job out
 * of reach looks exactly like one that does not exist.
 */
import type { CancelJob } from '../../domain/jobs/end/cancel-job.ts'
import type { Job, JobLog } from '../../domain/jobs/job.ts'
import { type JobReader, noSuchJob } from '../../domain/jobs/read/job-reader.ts'

export interface JobScope {
  readonly accountId: string
  /** null: jobs of every pool. */
  readonly pool: string | null
}

export interface ScopedJobs {
  peek(scope: JobScope, jobId: string): Job | undefined
  find(scope: JobScope, jobId: string): Promise<Job>
  workflow(scope: JobScope, jobId: string): Promise<string>
  log(scope: JobScope, jobId: string): Promise<JobLog | null>
  cancel(scope: JobScope, jobId: string): Promise<Job>
}

export interface ScopedJobsDeps {
  readonly reader: Pick<JobReader, 'peek' | 'find' | 'workflow' | 'log'>
  readonly cancel: CancelJob
}

export function createScopedJobs({ reader, cancel }: ScopedJobsDeps): ScopedJobs {
  /** A job never changes its pool, so this needs no transaction with what follows. */
  async function mustReach(scope: JobScope, jobId: string): Promise<void> {
    if (scope.pool !== null) await find(scope, jobId)
  }

  async function find(scope: JobScope, jobId: string): Promise<Job> {
    const job = await reader.find(scope.accountId, jobId)
    if (!isWithin(scope, job)) throw noSuchJob()
    return job
  }

  return {
    peek(scope, jobId) {
      const job = reader.peek(scope.accountId, jobId)
      return job !== undefined && isWithin(scope, job) ? job : undefined
    },
    find,
    async workflow(scope, jobId) {
      await mustReach(scope, jobId)
      return reader.workflow(scope.accountId, jobId)
    },
    async log(scope, jobId) {
      await mustReach(scope, jobId)
      return reader.log(scope.accountId, jobId)
    },
    async cancel(scope, jobId) {
      await mustReach(scope, jobId)
      return cancel(scope.accountId, jobId)
    },
  }
}

export function isWithin({ pool }: JobScope, job: Job): boolean {
  return pool === null || job.pool === pool
}
