/** Reads of single jobs, gathered: those that are asked for at the same time travel together. */
import type { Job } from '../../../../../domain/jobs/job.ts'
import type { JobStore } from '../../../../../domain/jobs/job-store.ts'
import { postgresOnly, query } from '../../../statements/statement.ts'
import { findJobs, type JobQuery } from '../../../stores/jobs/find-job.ts'
import { jobRow } from '../../../tables/jobs.ts'
import { pick } from '../../../tables/table.ts'
import type { Connected } from '../../database/connections.ts'
import { createGather } from '../../database/gather.ts'
import { runOn } from '../../shared-stores.ts'

const FOUND_AT_ONCE = 256

export function createFindJob(read: Connected): JobStore['find'] {
  const find = createGather<JobQuery, Job | null>({
    run: (queries) => runOn(read, findJobs(queries)),
    onBatch: read.noteBatch,
    maxItems: FOUND_AT_ONCE,
    maxRunning: 2,
  })
  return (accountId, jobId, now) => find({ accountId, jobId, now })
}

const LIVE_VERSIONS = query(
  'jobs.find_live_versions',
  pick(jobRow, 'id', 'version'),
  postgresOnly('SELECT id, version FROM job WHERE id = ANY(:ids::uuid[])'),
)

export function createFindLiveVersion(read: Connected): (jobId: string) => Promise<number | null> {
  return createGather<string, number | null>({
    async run(jobIds) {
      const rows = await read.all(LIVE_VERSIONS, { ids: [...new Set(jobIds)] })
      const versions = new Map(rows.map(({ id, version }) => [id, version]))
      return jobIds.map((jobId) => versions.get(jobId) ?? null)
    },
    onBatch: read.noteBatch,
    maxItems: FOUND_AT_ONCE,
    maxRunning: 2,
  })
}
