/**
 * What every operation of this surface knows of its request. An operation is one function `(app, deps) => void` that registers
 * its route; it is named after its `operationId` in the contract.
 */
import type { FastifyRequest } from 'fastify'
import { deploymentOf } from '../../domain/engine/copy-pool.ts'
import type { CancelJob } from '../../domain/jobs/end/cancel-job.ts'
import type { Job, JobLog } from '../../domain/jobs/job.ts'
import { type JobReader, noSuchJob } from '../../domain/jobs/read/job-reader.ts'

export interface RequestContext extends JobReach {
  /** What the credential may do; null: everything its account may. */
  readonly scopes: ReadonlySet<string> | null
  /** The API key that was shown, if any. */
  readonly keyId: string | null
  /** The endpoints that it may call and see; null: all. */
  readonly endpoints: readonly string[] | null
  readonly requestId: string
  /** Scheme and authority that the caller used (or the configured public base), without a trailing slash. */
  readonly origin: string
  /** '' or '/some/prefix'. Host-relative links begin with it. */
  readonly mountPrefix: string
}

/** The guards set the context before any handler runs. */
export type ContextOf = (request: FastifyRequest) => RequestContext

// Jobs as an address shows them: the address of a deployment only its own, any other address all of the account's. A job out
// of reach looks exactly like one that does not exist.

/** Which jobs a request can reach. */
export interface JobReach {
  readonly accountId: string
  /** null: jobs of every pool. */
  readonly pool: string | null
}

export interface ReachableJobs {
  peek(reach: JobReach, jobId: string): Job | undefined
  find(reach: JobReach, jobId: string): Promise<Job>
  workflow(reach: JobReach, jobId: string): Promise<string>
  log(reach: JobReach, jobId: string): Promise<JobLog | null>
  cancel(reach: JobReach, jobId: string): Promise<Job>
}

interface ReachableJobsDeps {
  readonly reader: Pick<JobReader, 'peek' | 'find' | 'workflow' | 'log'>
  readonly cancel: CancelJob
}

export function createReachableJobs({ reader, cancel }: ReachableJobsDeps): ReachableJobs {
  /** A job never changes its pool, so this needs no transaction with what follows. */
  async function mustReach(reach: JobReach, jobId: string): Promise<void> {
    if (reach.pool !== null) await find(reach, jobId)
  }

  async function find(reach: JobReach, jobId: string): Promise<Job> {
    const job = await reader.find(reach.accountId, jobId)
    if (!isReachable(reach, job)) throw noSuchJob()
    return job
  }

  return {
    peek(reach, jobId) {
      const job = reader.peek(reach.accountId, jobId)
      return job !== undefined && isReachable(reach, job) ? job : undefined
    },
    find,
    async workflow(reach, jobId) {
      await mustReach(reach, jobId)
      return reader.workflow(reach.accountId, jobId)
    },
    async log(reach, jobId) {
      await mustReach(reach, jobId)
      return reader.log(reach.accountId, jobId)
    },
    async cancel(reach, jobId) {
      await mustReach(reach, jobId)
      return cancel(reach.accountId, jobId)
    },
  }
}

export function isReachable({ pool }: JobReach, job: Job): boolean {
  return pool === null || deploymentOf(job.pool) === deploymentOf(pool)
}
