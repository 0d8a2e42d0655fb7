/** The job store on Postgres: which operation runs on which connections, and domain values in and out. */

import { isUuid } from '../../../../../lib/ids.ts'
import type { JobStore } from '../../../../domain/jobs/job-store.ts'
import { toJob } from '../../rows/jobs/job-row.ts'
import { createKnownRecipes } from '../../rows/jobs/known-recipes.ts'
import { withPartitions } from '../database/partitions.ts'
import { countByStatus } from '../operations/accounts/account-counters.ts'
import { cancelJobs, createCancels } from '../operations/jobs/cancel-job.ts'
import { dropExpired } from '../operations/jobs/drop-expired.ts'
import {
  createFindJob,
  createFindLiveVersion,
  findHolders,
  findLog,
  findOwner,
  findWorkflow,
} from '../operations/jobs/find-job.ts'
import { expireJobs, removeJobs } from '../operations/jobs/job-retention.ts'
import { listJobs } from '../operations/jobs/list-job-rows.ts'
import { answerAgain, findResult, sweepResults } from '../operations/jobs/reuse-result.ts'
import { createSubmits } from '../operations/jobs/submit-batches.ts'
import { createRunWrites } from './postgres-run-store.ts'
import type { StoreParts } from './store-parts.ts'

export function createJobStore(parts: StoreParts): JobStore {
  const cancel = createCancels(parts.durable)
  return {
    submit: createSubmits(parts),
    ...createReuse(parts),
    ...createRunWrites(parts),
    ...createJobReads(parts),
    ...createJobSweeps(parts),
    cancel: (accountId, jobId, now, isOnlyQueued = false) =>
      cancel({ accountId, jobId, now: now.getTime(), isOnlyQueued }),
  }
}

type Reuse = Pick<JobStore, 'findResult' | 'answerAgain' | 'sweepResults'>

const SWEPT_AT_ONCE = 1000

function createReuse({ durable, read, chore, partitions }: StoreParts): Reuse {
  const recipes = createKnownRecipes()
  return {
    findResult: (accountId, key, now) => findResult(read, { accountId, key, now: now.getTime() }),
    async answerAgain(job, again, claim) {
      const expiresAt = job.expiresAt.getTime()
      await partitions.ensure(expiresAt)
      const recipe = recipes.toFields(job)
      const answer = { job, again, claim, recipe }
      const outcome = await withPartitions(partitions, [expiresAt], () => answerAgain(durable, answer))
      if (outcome.outcome === 'answered' && recipe !== null) recipes.learn(job, recipe)
      return outcome
    },
    async sweepResults(now) {
      let total = 0
      for (;;) {
        const swept = await sweepResults(chore, { now: now.getTime(), limit: SWEPT_AT_ONCE })
        total += swept
        if (swept < SWEPT_AT_ONCE) return total
      }
    },
  }
}

/** Each in a transaction of its own, which a line of the audit trail may be bound to. */
export function createJobCancels({ durable }: Pick<StoreParts, 'durable'>): Pick<JobStore, 'cancel'> {
  return {
    async cancel(accountId, jobId, now, isOnlyQueued = false) {
      if (!isUuid(jobId)) return { outcome: 'not_found' }
      // null, so that an audit line calls it refused.
      const canceled = await durable.transaction(async (tx) => {
        const [outcome] = await cancelJobs(tx, [{ accountId, jobId, now: now.getTime(), isOnlyQueued }], false)
        return outcome === undefined || outcome.outcome === 'not_found' ? null : outcome
      })
      return canceled ?? { outcome: 'not_found' }
    },
  }
}

type JobReads = Pick<
  JobStore,
  'find' | 'findLiveVersion' | 'findOwner' | 'findHolders' | 'findWorkflow' | 'findLog' | 'list' | 'countByStatus'
>

function createJobReads({ read }: StoreParts): JobReads {
  const findJob = createFindJob(read)
  return {
    async find(accountId, jobId, now) {
      const stored = await findJob({ accountId, jobId, now: now.getTime() })
      return stored === null ? null : toJob(stored)
    },
    findLiveVersion: createFindLiveVersion(read),
    findWorkflow: (accountId, jobId, now) => findWorkflow(read, { accountId, jobId, now: now.getTime() }),
    findLog: (accountId, jobId, now) => findLog(read, { accountId, jobId, now: now.getTime() }),
    findOwner: (jobId) => findOwner(read, jobId),
    findHolders: (jobIds) => findHolders(read, jobIds),
    list: (accountId, query) => listJobs(read, accountId, query),
    countByStatus: () => countByStatus(read),
  }
}

type JobSweeps = Pick<JobStore, 'expire' | 'remove' | 'dropExpired'>

function createJobSweeps({ durable, chore }: StoreParts): JobSweeps {
  return {
    expire: (now, limit) => durable.transaction((tx) => expireJobs(tx, { now: now.getTime(), limit })),
    remove({ now, expiredBefore, limit }) {
      const input = { now: now.getTime(), expiredBefore: expiredBefore.getTime(), limit }
      return chore.transaction((tx) => removeJobs(tx, input), { isRepeatable: true })
    },
    dropExpired: ({ now, expiredBefore, limit, signal }) =>
      dropExpired(chore, { now: now.getTime(), expiredBefore: expiredBefore.getTime(), limit, signal }),
  }
}
