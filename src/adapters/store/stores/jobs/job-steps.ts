/** What is done to jobs beside their submit, their claim and what their runs write. */
import type { JobError, Output } from '../../../../domain/jobs/job.ts'
import type { AdoptRequest, CommitOutcome, JobStore, TouchedJob } from '../../../../domain/jobs/job-store.ts'
import { chore, defineStore, durable, read, relaxed } from '../../statements/operation.ts'
import { gatherInSlices } from '../in-slices.ts'
import { reserveOutputNumbers } from './add-outputs.ts'
import { adoptRun, findRuns, leaveRuns } from './adopt-run.ts'
import { cancelJob, type FoundCancel } from './cancel-job.ts'
import { type Commit, isProgressOnly, writeCommits, writeProgress } from './commit-run.ts'
import { sweepShares } from './fair-share.ts'
import { findHolders, findJobs, findLog, findOwner, findWorkflow } from './find-job.ts'
import { findResult, sweepResults } from './kept-results.ts'
import { reapLeases, renewLeases } from './leases.ts'
import { expireJobs, removeJobs, withdrawJob } from './retention.ts'
import { findLanes, findOutwaited, joinLane } from './waiting-lanes.ts'

type JobReads =
  | 'find'
  | 'findOwner'
  | 'findHolders'
  | 'findWorkflow'
  | 'findLog'
  | 'findLanes'
  | 'findOutwaited'
  | 'findResult'
  | 'findRuns'
type JobWrites = 'joinLane' | 'leave' | 'renew' | 'expire' | 'withdraw' | 'reserveOutputNumbers'

interface Reap {
  readonly now: Date
  readonly lapsedBefore: Date
  readonly maxAttempts: number
  readonly error: JobError
  readonly spared: readonly string[]
}

/** The sweeps take a bound for one transaction. */
interface JobSteps extends Pick<JobStore, JobReads | JobWrites> {
  cancel(accountId: string, jobId: string, now: Date, isOnlyQueued?: boolean): Promise<FoundCancel | null>
  reap(reap: Reap, limit: number): Promise<TouchedJob[]>
  adoptRun(request: AdoptRequest): Promise<readonly Output[] | null>
  remove(removal: { readonly now: Date; readonly expiredBefore: Date }, limit: number): Promise<number>
  sweepResults(now: Date, limit: number): Promise<number>
  sweepShares(before: Date, limit: number): Promise<number>
  /** On SQLite: one write of a worker. */
  commitOne(commit: Commit): Promise<CommitOutcome>
}

export const jobSteps = defineStore<JobSteps>('jobs', {
  find: read(function* (accountId, jobId, now) {
    const [job = null] = yield* findJobs([{ accountId, jobId, now }])
    return job
  }),
  findOwner: read(findOwner),
  findHolders: read(findHolders),
  findWorkflow: read(findWorkflow),
  findLog: read(findLog),
  findLanes: read(findLanes),
  findOutwaited: read(findOutwaited),
  joinLane: chore(joinLane, { isTransaction: false }),
  renew: relaxed(renewLeases, { isEssential: true }),
  cancel: durable(cancelJob, { isEssential: true }),
  reap: durable(reapLeases, { isEssential: true }),
  findRuns: read(findRuns),
  leave: durable(leaveRuns, { isEssential: true, isRepeatable: true }),
  adoptRun: durable(adoptRun, { isEssential: true }),
  expire: durable(expireJobs, { isEssential: true }),
  // After a broken connection it removes what is left.
  remove: chore(removeJobs, { isEssential: true, isRepeatable: true }),
  commitOne: durable(
    function* (commit) {
      const [outcome] = yield* isProgressOnly(commit) ? writeProgress([commit]) : writeCommits([commit])
      return outcome ?? { outcome: 'lost' }
    },
    { isEssential: true, weigh: ({ log }) => log?.text.length ?? 0 },
  ),
  findResult: read(findResult),
  sweepResults: chore(sweepResults, { isEssential: true, isTransaction: false }),
  sweepShares: chore(sweepShares, { isEssential: true, isTransaction: false }),
  // Durable on a server: a worker outlives its crash, and a number that the crash undid would be given to another file as well.
  reserveOutputNumbers: durable(reserveOutputNumbers, { isRelaxedAlone: true }),
  withdraw: durable(withdrawJob, { isEssential: true }),
})

/** `reap` of the port: in slices, so that no transaction locks many jobs. */
export async function reapInSlices(
  steps: Pick<JobSteps, 'reap'>,
  { now, lapsedBefore = now, maxAttempts, error, spared = [] }: Parameters<JobStore['reap']>[0],
): Promise<TouchedJob[]> {
  return gatherInSlices((limit) => steps.reap({ now, lapsedBefore, maxAttempts, error, spared }, limit))
}
