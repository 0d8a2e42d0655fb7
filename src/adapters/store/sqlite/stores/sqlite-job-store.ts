/** The job store on SQLite, as the main thread sees it: turns domain values into messages and answers into domain values. */

import type { Clock } from '../../../../../lib/clock.ts'
import type { Job } from '../../../../domain/jobs/job.ts'
import type { CancelOutcome, JobStore, ListQuery } from '../../../../domain/jobs/job-store.ts'
import { toJob } from '../../rows/jobs/job-row.ts'
import { createKnownRecipes } from '../../rows/jobs/known-recipes.ts'
import { readJobPage } from '../../search/job-pages.ts'
import type { CancelAnswer } from '../operations/jobs/cancel-job.ts'
import { toClaim, toClaimInput } from '../operations/jobs/claim-job.ts'
import { toCommitInput, toCommitOutcome } from '../operations/jobs/commit-run.ts'
import { toLeaseFields, toReturnedFields } from '../operations/jobs/leases.ts'
import { NEWEST_KEY } from '../operations/jobs/list-job-rows.ts'
import { toAnswerInput, toAnswerOutcome } from '../operations/jobs/reuse-result.ts'
import { toSubmitInput, toSubmitOutcome } from '../operations/jobs/submit-job.ts'
import { createOutputNumbers } from './output-number-cache.ts'
import { gatherInSlices, inSlices, type StoreChannels, UNLIMITED } from './store-channels.ts'

interface JobStoreDeps extends StoreChannels {
  readonly clock: Clock
}

export function createJobStore({ write, read, clock }: JobStoreDeps): JobStore {
  const outputNumbers = createOutputNumbers(write)
  const recipes = createKnownRecipes()
  return {
    ...createJobReads(read),
    ...createJobSweeps(write),
    async submit(job, claim) {
      const weight = job.workflow.length + (job.sealedExtraData?.byteLength ?? 0) + (job.notes?.length ?? 0)
      const recipe = recipes.toFields(job)
      const outcome = toSubmitOutcome(job, await write.call('submit', toSubmitInput(job, claim, recipe), weight))
      if (outcome.outcome === 'queued' && recipe !== null) recipes.learn(job, recipe)
      return outcome
    },
    async answerAgain(job, again, claim) {
      const recipe = recipes.toFields(job)
      const input = toAnswerInput(job, again, { claim, recipe })
      const outcome = toAnswerOutcome(await write.call('answerAgain', input, job.workflow.length))
      if (outcome.outcome === 'answered' && recipe !== null) recipes.learn(job, recipe)
      return outcome
    },
    async claim(request) {
      return toClaim(await write.call('claim', toClaimInput(request)), request.leaseId)
    },
    joinLane: (lane) => write.call('joinLane', lane),
    async renew(leases, until) {
      if (leases.length === 0) return []
      const input = { leases: leases.map(toLeaseFields), until: until.getTime() }
      const renewed = await write.call('renew', input)
      return renewed.map(([jobId, status]) => ({ jobId, status }))
    },
    async commit(lease, change) {
      if (change.outputs !== undefined) outputNumbers.writeDown()
      const input = toCommitInput(lease, change, clock.now())
      return toCommitOutcome(await write.call('commit', input, change.log?.text.length))
    },
    withdraw: ({ jobId, leaseId }, now) => write.call('withdraw', { jobId, leaseId, now: now.getTime() }),
    async release(leases, now) {
      if (leases.length === 0) return []
      return write.call('release', { leases: leases.map(toReturnedFields), now: now.getTime() })
    },
    ...createJobCancels({ write }),
    reserveOutputNumbers: outputNumbers.reserve,
  }
}

export function createJobCancels({ write }: Pick<StoreChannels, 'write'>): Pick<JobStore, 'cancel'> {
  return {
    async cancel(accountId, jobId, now, isOnlyQueued = false) {
      return toCancelOutcome(await write.call('cancel', { accountId, jobId, now: now.getTime(), isOnlyQueued }))
    },
  }
}

function toCancelOutcome(answer: CancelAnswer): CancelOutcome {
  return answer === null ? { outcome: 'not_found' } : { outcome: answer.outcome, job: toJob(answer.job) }
}

type JobReads = Pick<
  JobStore,
  | 'find'
  | 'findClaim'
  | 'findResult'
  | 'findOwner'
  | 'findHolders'
  | 'findWorkflow'
  | 'findLog'
  | 'list'
  | 'findLanes'
  | 'findOutwaited'
  | 'countByStatus'
>

const FIRST_LANE = { pool: '', lane: '' }

function createJobReads(read: StoreChannels['read']): JobReads {
  return {
    async find(accountId, jobId, now) {
      const stored = await read.call('findJob', { accountId, jobId, now: now.getTime() })
      return stored === null ? null : toJob(stored)
    },
    findResult: (accountId, key, now) => read.call('findResult', { accountId, key, now: now.getTime() }),
    findWorkflow: (accountId, jobId, now) => read.call('findWorkflow', { accountId, jobId, now: now.getTime() }),
    findLog: (accountId, jobId, now) => read.call('findLog', { accountId, jobId, now: now.getTime() }),
    list: (accountId, query) => listJobs(read, accountId, query),
    findLanes: (known, after = FIRST_LANE) => read.call('findLanes', { known, after }),
    findOutwaited: ({ now, ...query }) => read.call('findOutwaited', { ...query, now: now.getTime() }),
    findClaim: async (leaseId) => toClaim(await read.call('findClaim', leaseId), leaseId),
    findOwner: (jobId) => read.call('findOwner', jobId),
    findHolders: async (jobIds) => new Map(await read.call('findHolders', jobIds)),
    countByStatus: () => read.call('countByStatus', null),
  }
}

async function listJobs(read: StoreChannels['read'], accountId: string, query: ListQuery): Promise<Job[]> {
  const isPlain = Object.keys(query.metadata).length === 0
  const operation = (query.batchId ?? null) !== null ? 'listBatchJobs' : isPlain ? 'listJobs' : 'listLabelledJobs'
  return readJobPage(query, {
    accountId,
    newest: NEWEST_KEY,
    async readPart(part) {
      const { jobs, resumeBefore } = await read.call(operation, part)
      return { jobs: jobs.map(toJob), resumeBefore }
    },
  })
}

type JobSweeps = Pick<JobStore, 'reap' | 'expire' | 'remove' | 'sweepResults'>

function createJobSweeps(write: StoreChannels['write']): JobSweeps {
  return {
    reap({ now, lapsedBefore = now, maxAttempts, error }) {
      const input = {
        now: now.getTime(),
        lapsedBefore: lapsedBefore.getTime(),
        maxAttempts,
        error: JSON.stringify(error),
      }
      return gatherInSlices(UNLIMITED, (limit) => write.call('reap', { ...input, limit }))
    },
    sweepResults: (now) => inSlices(UNLIMITED, (limit) => write.call('sweepResults', { now: now.getTime(), limit })),
    expire: (now, limit) =>
      gatherInSlices(limit, (sliceLimit) => write.call('expireJobs', { now: now.getTime(), limit: sliceLimit })),
    remove({ now, expiredBefore, limit }) {
      const input = { now: now.getTime(), expiredBefore: expiredBefore.getTime() }
      return inSlices(limit, (sliceLimit) => write.call('removeJobs', { ...input, limit: sliceLimit }))
    },
  }
}
