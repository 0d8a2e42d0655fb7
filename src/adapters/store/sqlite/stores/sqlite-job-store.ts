/** The job store on SQLite, as the main thread sees it. */
import type { Clock } from '../../../../../lib/clock.ts'
import type { JobStore } from '../../../../domain/jobs/job-store.ts'
import { createListJobs } from '../../search/job-pages.ts'
import { accountSteps } from '../../stores/account-store.ts'
import { gatherInSlices, inSlices } from '../../stores/in-slices.ts'
import { createAdopt } from '../../stores/jobs/adopt-run.ts'
import { toCommit } from '../../stores/jobs/commit-run.ts'
import { jobSteps, reapInSlices } from '../../stores/jobs/job-steps.ts'
import { createSubmits } from '../../stores/jobs/submits.ts'
import { jobLists } from '../own/list-jobs.ts'
import { submits } from '../own/submits.ts'
import { openShared } from '../shared-stores.ts'
import type { StoreChannels } from './store-channels.ts'

interface JobStoreDeps extends StoreChannels {
  readonly clock: Clock
}

export function createJobStore({ write, read, clock }: JobStoreDeps): JobStore {
  const steps = openShared(jobSteps, { write, read })
  return {
    ...steps,
    ...createJobCancels({ write, read }),
    ...createSubmits(openShared(submits, { write, read })),
    claim: (request) => write.call('claim', request),
    findClaim: (leaseId) => read.call('findClaim', leaseId),
    adopt: createAdopt(steps.adoptRun, (leaseId) => read.call('findClaim', leaseId)),
    commit: (lease, change) => steps.commitOne(toCommit(lease, change, clock.now())),
    release: async (leases, now) => (leases.length === 0 ? [] : write.call('release', { leases, now })),
    reap: (options) => reapInSlices(steps, options),
    sweepResults: (now) => inSlices((limit) => steps.sweepResults(now, limit)),
    sweepShares: (before) => inSlices((limit) => steps.sweepShares(before, limit)),
    expire: (now, limit) => gatherInSlices((sliceLimit) => steps.expire(now, sliceLimit), limit),
    remove: ({ limit, ...removal }) => inSlices((sliceLimit) => steps.remove(removal, sliceLimit), limit),
    list: createListJobs(openShared(jobLists, { write, read })),
    countByStatus: openShared(accountSteps, { write, read }).countByStatus,
  }
}

export function createJobCancels(channels: StoreChannels): Pick<JobStore, 'cancel'> {
  const { cancel } = openShared(jobSteps, channels)
  return { cancel: async (...asked) => (await cancel(...asked)) ?? { outcome: 'not_found' } }
}
