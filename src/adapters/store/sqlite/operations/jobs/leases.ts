/** The life of leases: renewed in one statement, given back by a worker that drains, taken back when they have run out. */

import type { DatabaseSync } from 'node:sqlite'
import type { Lease, ReturnedLease, TouchedJob } from '../../../../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { ATTEMPTS_LENGTH, type AttemptEnd } from '../../../rows/jobs/attempt-fields.ts'
import { COLUMN } from '../../../rows/jobs/job-row.ts'
import { prepareRows } from '../statement.ts'
import { createClaimTurns } from './claim-job.ts'
import { prepareEndJob } from './end-job.ts'

type LeaseFields = readonly [jobId: string, leaseId: string]

interface RenewInput {
  readonly leases: readonly LeaseFields[]
  readonly until: number
}

type ReturnedFields = readonly [
  jobId: string,
  leaseId: string,
  isSpent: boolean,
  engineLosses: number,
  spentTurns: number,
]

interface ReleaseInput {
  readonly leases: readonly ReturnedFields[]
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

export function toReturnedFields(returned: ReturnedLease): ReturnedFields {
  const { jobId, leaseId, isSpent, isEngineLoss, spentTurns = 0 } = returned
  return [jobId, leaseId, isSpent === true, isEngineLoss === true ? 1 : 0, spentTurns]
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

/** `turns`: of those who claim from the same store. */
export function prepareRelease(
  database: DatabaseSync,
  turns = createClaimTurns(database),
): (input: ReleaseInput) => TouchedJob[] {
  const selectHeld = prepareRows<HeldRow>(
    database,
    `SELECT seq, id, account_id, status, attempt FROM job
     WHERE id = ? AND lease_id = ? AND status IN ('running', 'canceling')`,
  )
  const requeueJob = prepareRequeueJob(database)
  const moveToEnd = prepareMoveToEnd(database)
  const spend = database.prepare('UPDATE account SET served = ? WHERE id = ?')
  const endJob = prepareEndJob(database)
  return ({ leases, now }) =>
    leases.flatMap(([id, leaseId, isSpent, engineLosses, spentTurns]): TouchedJob[] => {
      const held = selectHeld.get(id, leaseId)
      if (held === undefined) return []
      const [seq, jobId, accountId, from] = held
      if (from === 'running') {
        const why = engineLosses > 0 ? 'engine_fault' : isSpent ? 'engine_lost' : 'returned'
        const version = requeueJob({ seq, accountId, refundedAttempts: isSpent ? 0 : 1, engineLosses, at: now, why })
        if (spentTurns > 0) {
          moveToEnd(seq)
          spend.run(turns.last + spentTurns, accountId)
        }
        return [{ jobId, accountId, version, status: 'queued' }]
      }
      const row = endJob({ seq, accountId, from, to: 'canceled', at: now, error: null, isLost: isSpent })
      return [{ jobId, accountId, version: row[COLUMN.version], status: 'canceled' }]
    })
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
        const version = requeueJob({
          seq,
          accountId,
          refundedAttempts: 0,
          engineLosses: 0,
          at: now,
          why: 'worker_lost',
        })
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
  readonly engineLosses: number
  readonly at: number
  readonly why: AttemptEnd
}

/**
 * A held job goes back to its former position in the queue, also beyond the bound of the queue: it was accepted once. Returns
 * its new version.
 */
function prepareRequeueJob(database: DatabaseSync): (requeue: JobRequeue) => number {
  const update = prepareRows<[number]>(
    database,
    `UPDATE job SET status = 'queued', lease_id = NULL, lease_until = NULL, attempt = attempt - ?2,
       engine_losses = engine_losses + ?3, version = version + 1,
       attempts = iif(length(coalesce(attempts, '')) < ${ATTEMPTS_LENGTH}, json_insert(coalesce(attempts, '[]'), '$[#]',
         json_array(attempt, engine_id, started_at, ?4, ?5)), attempts)
     WHERE seq = ?1 RETURNING version`,
  )
  const count = database.prepare('UPDATE account SET queued = queued + 1, running = running - 1 WHERE id = ?')
  return ({ seq, accountId, refundedAttempts, engineLosses, at, why }) => {
    const row = update.get(seq, refundedAttempts, engineLosses, at, why)
    if (row === undefined) throw new Error(`No job at ${seq}.`)
    count.run(accountId)
    const [version] = row
    return version
  }
}

/** Puts a waiting job behind all others, with everything that is kept under its number. */
function prepareMoveToEnd(database: DatabaseSync): (seq: number) => void {
  const selectLast = prepareRows<[number]>(database, 'SELECT max(seq) FROM job')
  const tables = prepareRows<[string]>(
    database,
    `SELECT kept.name FROM sqlite_schema AS kept JOIN pragma_table_info(kept.name) AS field
     WHERE kept.type = 'table' AND (kept.name = 'job' OR kept.name GLOB 'job_*') AND field.name = 'seq'`,
  ).all()
  const moves = tables.map(([table]) => database.prepare(`UPDATE ${table} SET seq = ?2 WHERE seq = ?1`))
  return (seq) => {
    const last = selectLast.get()?.[0] ?? seq
    if (last > seq) for (const move of moves) move.run(seq, last + 1)
  }
}
