/** The worker's side of the job store: claims, leases and what runs write. */
import type { JobStore, TouchedJob } from '../../../../domain/jobs/job-store.ts'
import { createClaims, findClaim } from '../operations/jobs/claim-job.ts'
import { createCommitRun } from '../operations/jobs/commit-run.ts'
import { reserveOutputNumbers } from '../operations/jobs/job-outputs.ts'
import { reapLeases, releaseLeases, renewLeases } from '../operations/jobs/leases.ts'
import { findLanes, findOutwaited, joinLane } from '../operations/jobs/waiting-lanes.ts'
import { withdrawJob } from '../operations/jobs/withdraw-job.ts'
import type { StoreParts } from './store-parts.ts'

type RunWrites = Pick<
  JobStore,
  | 'claim'
  | 'claimSeveral'
  | 'findClaim'
  | 'findLanes'
  | 'findOutwaited'
  | 'joinLane'
  | 'renew'
  | 'commit'
  | 'withdraw'
  | 'release'
  | 'reap'
  | 'reserveOutputNumbers'
>

// A sweep locks no more jobs than this at a time.
const REAPED_AT_ONCE = 100

export function createRunWrites({ durable, relaxed, read, chore, clock }: StoreParts): RunWrites {
  const commitRun = createCommitRun({ durable, relaxed })
  return {
    ...createClaims(relaxed),
    findClaim: (leaseId) => findClaim(relaxed, leaseId),
    findLanes: (known, after) => findLanes(read, known, after),
    findOutwaited: (query) => findOutwaited(read, query),
    joinLane: (lane) => joinLane(chore, lane),
    renew: (leases, until) => renewLeases(relaxed, leases, until.getTime()),
    commit: (lease, change) => commitRun(lease, change, clock.now()),
    withdraw: (lease, now) => durable.transaction((tx) => withdrawJob(tx, lease, now.getTime())),
    async release(leases, now) {
      if (leases.length === 0) return []
      return durable.transaction((tx) => releaseLeases(tx, leases, now.getTime()), { isRepeatable: true })
    },
    async reap({ now, lapsedBefore = now, maxAttempts, error }) {
      const input = {
        now: now.getTime(),
        lapsedBefore: lapsedBefore.getTime(),
        maxAttempts,
        error: JSON.stringify(error),
      }
      const touched: TouchedJob[] = []
      for (;;) {
        const slice = await durable.transaction((tx) => reapLeases(tx, { ...input, limit: REAPED_AT_ONCE }))
        touched.push(...slice)
        if (slice.length < REAPED_AT_ONCE) return touched
      }
    },
    // Durable: a worker outlives a crash of the server, and a number that the crash undid would be given to another file as well.
    reserveOutputNumbers: (accountId, folder, prefix, count) =>
      reserveOutputNumbers(durable, { accountId, folder, prefix, count }),
  }
}
