/**
 * The life of leases: renewed in one statement, given back by a worker that drains, taken back when they have run out. Jobs are
 * locked by their ids in order, then the counters of their accounts.
 */

import type { Lease, ReturnedLease, TouchedJob } from '../../../../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { ATTEMPTS_LENGTH, type AttemptEnd } from '../../../rows/jobs/attempt-fields.ts'
import { COLUMN } from '../../../rows/jobs/job-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { endJobs, type JobEnd } from './end-job.ts'

function toLeaseColumns(leases: readonly Lease[]): [jobIds: string[], leaseIds: string[]] {
  return [leases.map(({ jobId }) => jobId), leases.map(({ leaseId }) => leaseId)]
}

const RENEW = statement<[jobId: string, status: JobStatus]>(
  'leases.renew',
  `WITH held AS MATERIALIZED (
     SELECT job.id FROM unnest($1::uuid[], $2::text[]) AS lease(job_id, lease_id) JOIN job ON job.id = lease.job_id
     WHERE job.lease_id = lease.lease_id AND job.status IN ('running', 'canceling')
     ORDER BY job.id FOR NO KEY UPDATE OF job)
   UPDATE job SET lease_until = $3 FROM held WHERE job.id = held.id RETURNING job.id, job.status`,
)

/** The jobs that are still held, with their status: a cancel may have come. */
export async function renewLeases(
  db: Queryable,
  leases: readonly Lease[],
  until: number,
): Promise<{ readonly jobId: string; readonly status: JobStatus }[]> {
  if (leases.length === 0) return []
  const renewed = await db.all(RENEW, [...toLeaseColumns(leases), until])
  return renewed.map(([jobId, status]) => ({ jobId, status }))
}

type HeldRow = readonly [jobId: string, accountId: string, status: JobStatus, attempt: number]

const LOCK_HELD = statement<HeldRow>(
  'leases.lock_held',
  `SELECT job.id, job.account_id, job.status, job.attempt
   FROM unnest($1::uuid[], $2::text[]) AS lease(job_id, lease_id) JOIN job ON job.id = lease.job_id
   WHERE job.lease_id = lease.lease_id AND job.status IN ('running', 'canceling')
   ORDER BY job.id FOR NO KEY UPDATE OF job`,
)

/** Gives jobs back, without spending an attempt unless the lease says so; a canceling one ends. */
export async function releaseLeases(
  tx: Queryable,
  leases: readonly ReturnedLease[],
  now: number,
): Promise<TouchedJob[]> {
  const held = await tx.all(LOCK_HELD, toLeaseColumns(leases))
  const byId = new Map(held.map((row) => [row[0], row]))
  const leaseOf = new Map(leases.map((lease) => [lease.jobId, lease]))
  const inOrder = leases.map(({ jobId }) => byId.get(jobId)).filter((row) => row !== undefined)
  return giveBack(tx, [...new Set(inOrder)], {
    refundedAttempts: ([id]) => (leaseOf.get(id)?.isSpent === true ? 0 : 1),
    engineLosses: ([id]) => (leaseOf.get(id)?.isEngineLoss === true ? 1 : 0),
    spentTurns: ([id]) => leaseOf.get(id)?.spentTurns ?? 0,
    at: now,
    why([id]) {
      if (leaseOf.get(id)?.isEngineLoss === true) return 'engine_fault'
      return leaseOf.get(id)?.isSpent === true ? 'engine_lost' : 'returned'
    },
    toEnd([id, , status]) {
      if (status === 'running') return null
      return { id, to: 'canceled', at: now, error: null, isLost: leaseOf.get(id)?.isSpent === true }
    },
  })
}

interface ReapInput {
  readonly now: number
  readonly lapsedBefore: number
  readonly maxAttempts: number
  /** JSON. */
  readonly error: string
  readonly limit: number
}

// Bounded by the server's own clock: a node whose clock is ahead cannot take a lease that is alive. Held jobs are few, so they
// are walked; one that is just being renewed, ended or reaped elsewhere is passed over.
const LOCK_LAPSED = statement<HeldRow>(
  'leases.lock_lapsed',
  `SELECT id, account_id, status, attempt FROM job
   WHERE status IN ('running', 'canceling')
     AND lease_until < least($1::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)
   ORDER BY lease_until LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED`,
)

/** Takes back the leases that ran out, at most `limit`: requeued with the next attempt, or ended once the attempts are spent. */
export async function reapLeases(tx: Queryable, input: ReapInput): Promise<TouchedJob[]> {
  const { now, lapsedBefore, maxAttempts, error, limit } = input
  const lapsed = await tx.all(LOCK_LAPSED, [lapsedBefore, limit])
  return giveBack(tx, lapsed, {
    refundedAttempts: () => 0,
    engineLosses: () => 0,
    spentTurns: () => 0,
    at: now,
    why: () => 'worker_lost',
    toEnd([id, , status, attempt]) {
      if (status === 'canceling') return { id, to: 'canceled', at: now, error: null, isLost: true }
      return attempt < maxAttempts ? null : { id, to: 'failed', at: now, error, isLost: true }
    },
  })
}

interface GiveBack {
  /** Attempts to give back: 1 when the run was not at fault. */
  readonly refundedAttempts: (row: HeldRow) => 0 | 1
  readonly engineLosses: (row: HeldRow) => 0 | 1
  /** Above 0: it goes behind all that wait, and its account is as if it had been served so many claims later. */
  readonly spentTurns: (row: HeldRow) => number
  readonly at: number
  readonly why: (row: HeldRow) => AttemptEnd
  /** null: the job goes back to the queue. */
  readonly toEnd: (row: HeldRow) => JobEnd | null
}

const LOCK_LOADS = statement(
  'leases.lock_loads',
  'SELECT 1 FROM account_load WHERE account_id = ANY($1::text[]) ORDER BY account_id FOR NO KEY UPDATE',
)

// A held job goes back to its former position in the queue, also beyond the bound of the queue: it was accepted once.
const REQUEUE = statement<[jobId: string, version: number]>(
  'leases.requeue',
  `WITH back AS (
     UPDATE job SET status = 'queued', lease_id = NULL, lease_until = NULL, attempt = job.attempt - given.attempts,
       engine_losses = engine_losses + given.losses, version = version + 1,
       seq = CASE WHEN given.turns > 0 THEN nextval(pg_get_serial_sequence('job', 'seq')) ELSE seq END,
       attempts = CASE WHEN length(coalesce(job.attempts, '')) < ${ATTEMPTS_LENGTH} THEN (coalesce(job.attempts, '[]')::jsonb
         || jsonb_build_array(jsonb_build_array(job.attempt, engine_id, started_at, $5::bigint, given.why)))::text
         ELSE job.attempts END
     FROM unnest($1::uuid[], $2::int[], $3::int[], $4::text[], $6::int[]) AS given(job_id, attempts, losses, why, turns)
     WHERE id = given.job_id RETURNING id, account_id, version, given.turns),
   counted AS (
     UPDATE account_load AS load SET running = load.running - change.jobs, started = load.started - change.jobs,
       served = CASE WHEN change.turns > 0 THEN nextval('claim_turn') + change.turns ELSE load.served END
     FROM (SELECT account_id, count(*) AS jobs, max(turns) AS turns FROM back GROUP BY account_id) AS change
     WHERE load.account_id = change.account_id)
   SELECT id, version FROM back`,
)

async function giveBack(tx: Queryable, held: readonly HeldRow[], rules: GiveBack): Promise<TouchedJob[]> {
  if (held.length === 0) return []
  const ends = held.map(rules.toEnd).filter((end) => end !== null)
  const ending = new Map(ends.map((end) => [end.id, end]))
  const returning = held.filter(([id]) => !ending.has(id))
  const [, requeued, ended] = await Promise.all([
    tx.run(LOCK_LOADS, [held.map(([, accountId]) => accountId)]),
    returning.length > 0 ? tx.all(REQUEUE, toReturnColumns(returning, rules)) : [],
    endJobs(tx, ends),
  ])
  const versions = new Map<string, number>([
    ...requeued,
    ...ended.map((row) => [row[COLUMN.id], row[COLUMN.version]] as const),
  ])
  return held.map(([jobId, accountId]) => ({
    jobId,
    accountId,
    version: versions.get(jobId) ?? 0,
    status: ending.get(jobId)?.to ?? 'queued',
  }))
}

function toReturnColumns(rows: readonly HeldRow[], rules: GiveBack): unknown[] {
  const { refundedAttempts, engineLosses, spentTurns, why, at } = rules
  const returned = [rows.map(([id]) => id), rows.map(refundedAttempts), rows.map(engineLosses), rows.map(why)]
  return [...returned, at, rows.map(spentTurns)]
}
