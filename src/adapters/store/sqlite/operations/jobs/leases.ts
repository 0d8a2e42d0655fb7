/** The life of leases: renewed in one statement, given back by a worker that drains, taken back when they have run out. */
import type { DatabaseSync } from 'node:sqlite'
import type { Lease, TouchedJob } from '../../../../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { prepareRows } from '../statement.ts'
import { prepareEndJob } from './end-job.ts'
import { COLUMN } from './job-row.ts'

type LeaseFields = readonly [jobId: string, leaseId: string]

interface RenewInput {
  readonly leases: readonly LeaseFields[]
  readonly until: number
}

interface ReleaseInput {
  readonly leases: readonly LeaseFields[]
  readonly now: number
}

interface ReapInput {
  readonly now: number
  readonly lapsedBefore: number
  readonly maxAttempts: number
  readonly error: string
  readonly limit: number
}

export function toLeaseFields({ jobId, leaseId }: Lease): LeaseFields {
  return [jobId, leaseId]
}

export function prepareRenew(database: DatabaseSync): (input: RenewInput) => [jobId: string, status: JobStatus][] {
  const update = prepareRows<[string, JobStatus]>(
    database,
    `UPDATE job SET lease_until = ?2 FROM json_each(?1) AS lease
     WHERE job.id = lease.value ->> 0 AND lease_id = lease.value ->> 1 AND status IN ('running', 'canceling')
     RETURNING job.id, status`,
  )
  return ({ leases, until }) => update.all(JSON.stringify(leases), until)
}

type HeldRow = [seq: number, jobId: string, accountId: string, status: JobStatus, attempt: number]

export function prepareRelease(database: DatabaseSync): (input: ReleaseInput) => TouchedJob[] {
  const selectHeld = prepareRows<HeldRow>(
    database,
    `SELECT seq, id, account_id, status, attempt FROM job
     WHERE id = ? AND lease_id = ? AND status IN ('running', 'canceling')`,
  )
  const requeueJob = prepareRequeueJob(database)
  const endJob = prepareEndJob(database)
  return ({ leases, now }) => {
    const held = leases.map(([jobId, leaseId]) => selectHeld.get(jobId, leaseId)).filter((row) => row !== undefined)
    return held.map(([seq, jobId, accountId, status]) => {
      if (status === 'running') {
        const version = requeueJob({ seq, accountId, refundedAttempts: 1 })
        return { jobId, accountId, version, status: 'queued' }
      }
      const version = endJob({ seq, accountId, from: status, to: 'canceled', at: now, error: null })[COLUMN.version]
      return { jobId, accountId, version, status: 'canceled' }
    })
  }
}

export function prepareReap(database: DatabaseSync): (input: ReapInput) => TouchedJob[] {
  const selectLapsed = prepareRows<HeldRow>(
    database,
    `SELECT seq, id, account_id, status, attempt FROM job
     WHERE status IN ('running', 'canceling') AND lease_until < ? ORDER BY lease_until LIMIT ?`,
  )
  const requeueJob = prepareRequeueJob(database)
  const endJob = prepareEndJob(database)
  return ({ now, lapsedBefore, maxAttempts, error, limit }) =>
    selectLapsed.all(lapsedBefore, limit).map(([seq, jobId, accountId, from, attempt]) => {
      if (from === 'running' && attempt < maxAttempts) {
        const version = requeueJob({ seq, accountId, refundedAttempts: 0 })
        return { jobId, accountId, version, status: 'queued' }
      }
      const end = from === 'canceling' ? ({ to: 'canceled', error: null } as const) : ({ to: 'failed', error } as const)
      const version = endJob({ seq, accountId, from, at: now, isLost: true, ...end })[COLUMN.version]
      return { jobId, accountId, version, status: end.to }
    })
}

interface JobRequeue {
  readonly seq: number
  readonly accountId: string
  /** Attempts to give back: 1 when the run was not at fault. */
  readonly refundedAttempts: 0 | 1
}

/**
 * A held job goes back to its former position in the queue, also beyond the bound of the queue: it was accepted once. Returns
 * its new version.
 */
function prepareRequeueJob(database: DatabaseSync): (requeue: JobRequeue) => number {
  const update = prepareRows<[number]>(
    database,
    `UPDATE job SET status = 'queued', lease_id = NULL, lease_until = NULL, attempt = attempt - ?2, version = version + 1
     WHERE seq = ?1 RETURNING version`,
  )
  const count = database.prepare('UPDATE account SET queued = queued + 1, running = running - 1 WHERE id = ?')
  return ({ seq, accountId, refundedAttempts }) => {
    const row = update.get(seq, refundedAttempts)
    if (row === undefined) throw new Error(`No job at ${seq}.`)
    count.run(accountId)
    const [version] = row
    return version
  }
}
