/** The end of retention: live jobs become `expired`, ended ones go with everything that belongs to them. */

import type { DatabaseSync } from 'node:sqlite'
import type { TouchedJob } from '../../../../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN } from '../../../rows/jobs/job-row.ts'
import { prepareRows } from '../statement.ts'
import { prepareEndJob } from './end-job.ts'

interface ExpireInput {
  readonly now: number
  readonly limit: number
}

interface RemoveInput {
  readonly now: number
  readonly expiredBefore: number
  readonly limit: number
}

export function prepareExpireJobs(database: DatabaseSync): (input: ExpireInput) => TouchedJob[] {
  const selectDue = prepareRows<[seq: number, jobId: string, accountId: string, status: JobStatus]>(
    database,
    `SELECT seq, id, account_id, status FROM job
     WHERE status IN ('queued', 'running', 'canceling') AND expires_at <= ? ORDER BY expires_at LIMIT ?`,
  )
  const endJob = prepareEndJob(database)
  return ({ now, limit }) =>
    selectDue.all(now, limit).map(([seq, jobId, accountId, from]) => {
      const version = endJob({ seq, accountId, from, to: 'expired', at: now, error: null })[COLUMN.version]
      return { jobId, accountId, version, status: 'expired' }
    })
}

export function prepareRemoveJobs(database: DatabaseSync): (input: RemoveInput) => number {
  const selectEnded = prepareRows<[seq: number]>(
    database,
    `SELECT seq FROM job WHERE status IN ('succeeded', 'failed', 'canceled') AND expires_at <= ? ORDER BY expires_at LIMIT ?`,
  )
  const selectExpired = prepareRows<[seq: number]>(
    database,
    `SELECT seq FROM job WHERE status = 'expired' AND completed_at <= ? ORDER BY completed_at LIMIT ?`,
  )
  const removeJob = prepareRemoveJob(database)
  return ({ now, expiredBefore, limit }) => {
    const ended = selectEnded.all(now, limit)
    const expired = selectExpired.all(expiredBefore, limit - ended.length)
    for (const [seq] of [...ended, ...expired]) removeJob(seq, now)
    return ended.length + expired.length
  }
}

interface WithdrawInput {
  readonly jobId: string
  readonly leaseId: string
  readonly now: number
}

/** A job that ends before its submit was answered: its key may be used again, and nothing of it is charged or listed. */
export function prepareWithdraw(database: DatabaseSync): (input: WithdrawInput) => boolean {
  const selectHeld = prepareRows<[seq: number, accountId: string]>(
    database,
    `SELECT seq, account_id FROM job WHERE id = ? AND lease_id = ? AND status = 'running'`,
  )
  const dropKey = database.prepare('DELETE FROM idempotency_key WHERE account_id = ? AND job_id = ?')
  const endJob = prepareEndJob(database)
  const removeJob = prepareRemoveJob(database)
  return ({ jobId, leaseId, now }) => {
    const held = selectHeld.get(jobId, leaseId)
    if (held === undefined) return false
    const [seq, accountId] = held
    endJob({ seq, accountId, from: 'running', to: 'failed', at: now, error: null, isLost: true })
    removeJob(seq, now)
    dropKey.run(accountId, jobId)
    return true
  }
}

// Unlisted files of a job are records with its deadline: they go like every other record past its life.
const PARTS = ['job_workflow', 'job_log', 'job_output', 'job_submission', 'job_run', 'job_hidden']

function prepareRemoveJob(database: DatabaseSync): (seq: number, now: number) => void {
  const deleteJob = prepareRows<
    [id: string, accountId: string, status: JobStatus, createdAt: number, metadata: string]
  >(database, `DELETE FROM job WHERE seq = ? RETURNING id, account_id, status, created_at, coalesce(metadata, '{}')`)
  const count = database.prepare(`
    UPDATE account SET succeeded = succeeded - (?2 = 'succeeded'), canceled = canceled - (?2 = 'canceled'),
      failed = failed - (?2 = 'failed'), expired = expired - (?2 = 'expired') WHERE id = ?1`)
  const deleteLabels = database.prepare(`
    DELETE FROM job_label WHERE (account_id, key, value, created_at, job_id) IN
      (SELECT ?1, key, value, ?2, ?3 FROM json_each(?4))`)
  const offerOutputs = database.prepare(`
    INSERT INTO blob_candidate (hash, size_bytes, since) SELECT hash, size_bytes, ?2 FROM job_output WHERE seq = ?1
    ON CONFLICT (hash) DO UPDATE SET since = max(since, excluded.since)`)
  const deleteAssets = database.prepare('DELETE FROM asset WHERE id IN (SELECT asset_id FROM job_output WHERE seq = ?)')
  const deleteParts = PARTS.map((table) => database.prepare(`DELETE FROM ${table} WHERE seq = ?`))
  return (seq, now) => {
    const row = deleteJob.get(seq)
    if (row === undefined) return
    const [id, accountId, status, createdAt, metadata] = row
    count.run(accountId, status)
    if (metadata !== '{}') deleteLabels.run(accountId, createdAt, id, metadata)
    offerOutputs.run(seq, now)
    deleteAssets.run(seq)
    for (const statement of deleteParts) statement.run(seq)
  }
}
