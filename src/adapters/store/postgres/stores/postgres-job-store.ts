/** The job store on Postgres: which operation runs on which connections. */
import type { Job } from '../../../../domain/jobs/job.ts'
import type { JobStore } from '../../../../domain/jobs/job-store.ts'
import { createListJobs } from '../../search/job-pages.ts'
import { postgresOnly, query } from '../../statements/statement.ts'
import { accountSteps } from '../../stores/account-store.ts'
import { inSlices } from '../../stores/in-slices.ts'
import { createAdopt } from '../../stores/jobs/adopt-run.ts'
import { cancelJob } from '../../stores/jobs/cancel-job.ts'
import { findJobs, type JobQuery } from '../../stores/jobs/find-job.ts'
import { jobSteps, reapInSlices } from '../../stores/jobs/job-steps.ts'
import { releaseLeases } from '../../stores/jobs/leases.ts'
import { createSubmits } from '../../stores/jobs/submits.ts'
import { jobRow } from '../../tables/jobs.ts'
import { pick } from '../../tables/table.ts'
import type { Connected } from '../database/connections.ts'
import { createGather } from '../database/gather.ts'
import { createClaim, findClaim } from '../operations/jobs/claim-job.ts'
import { createCommitRun } from '../operations/jobs/commit-run.ts'
import { dropExpired } from '../operations/jobs/drop-expired.ts'
import { createSubmitSteps } from '../operations/jobs/submits.ts'
import { jobLists } from '../own/list-jobs.ts'
import { openShared, runOn } from '../shared-stores.ts'
import type { StoreParts } from './store-parts.ts'

/** Reads of single jobs, gathered: those that are asked for at the same time travel together. */
const FOUND_AT_ONCE = 256

function createFindJob(read: Connected): JobStore['find'] {
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

function createFindLiveVersion(read: Connected): (jobId: string) => Promise<number | null> {
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

export function createJobStore(parts: StoreParts): JobStore {
  const { durable, relaxed, read, chore } = parts
  const steps = openShared(jobSteps, parts)
  return {
    ...steps,
    ...createSubmits(createSubmitSteps(parts)),
    claim: createClaim(relaxed),
    findClaim: (leaseId) => findClaim(relaxed, leaseId),
    adopt: createAdopt(steps.adoptRun, (leaseId) => findClaim(relaxed, leaseId)),
    commit: createCommitRun(parts),
    release: (leases, now) =>
      durable.transaction((tx) => runOn(tx, releaseLeases(leases, now, 0)), { isRepeatable: true }),
    reap: (options) => reapInSlices(steps, options),
    remove: ({ limit, ...removal }) => steps.remove(removal, limit),
    sweepResults: (now) => inSlices((limit) => steps.sweepResults(now, limit)),
    sweepShares: (before) => inSlices((limit) => steps.sweepShares(before, limit)),
    dropExpired: ({ now, expiredBefore, limit, signal }) =>
      dropExpired(chore, { now: now.getTime(), expiredBefore: expiredBefore.getTime(), limit, signal }),
    ...createJobCancels(parts),
    find: createFindJob(read),
    findLiveVersion: createFindLiveVersion(read),
    list: createListJobs(openShared(jobLists, parts)),
    countByStatus: openShared(accountSteps, parts).countByStatus,
  }
}

/** Each in a transaction of its own, which a line of the audit trail may be bound to. */
export function createJobCancels({ durable }: Pick<StoreParts, 'durable'>): Pick<JobStore, 'cancel'> {
  return {
    async cancel(accountId, jobId, now, isOnlyQueued) {
      let tries = 0
      const canceled = await durable.transaction(
        async (tx) => {
          const outcome = await runOn(tx, cancelJob(accountId, jobId, now, isOnlyQueued))
          // A try whose answer was lost may have ended it.
          const isOurs = tries++ > 0 && outcome?.job.completedAt?.getTime() === now.getTime()
          return isOurs && outcome.job.status === 'canceled' ? { ...outcome, outcome: 'canceled' as const } : outcome
        },
        { isRepeatable: true },
      )
      return canceled ?? { outcome: 'not_found' }
    },
  }
}
