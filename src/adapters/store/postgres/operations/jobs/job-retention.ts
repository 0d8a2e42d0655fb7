/**
 * The end of retention: live jobs become `expired`, and single ended ones go with everything that belongs to them. A service removes
 * ended jobs by whole ranges (drop-expired.ts).
 */

import type { TouchedJob } from '../../../../../domain/jobs/job-store.ts'
import { COLUMN } from '../../../rows/jobs/job-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { offerBlobs, removeRecords } from '../assets/blob-references.ts'
import { endJobs } from './end-job.ts'

interface ExpireInput {
  readonly now: number
  readonly limit: number
}

const LOCK_DUE = statement<[id: string]>(
  'jobs.lock_due',
  'SELECT id FROM job WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED',
)

export async function expireJobs(tx: Queryable, { now, limit }: ExpireInput): Promise<TouchedJob[]> {
  const due = await tx.all(LOCK_DUE, [now, limit])
  const ends = due.map(([id]) => ({ id, to: 'expired', at: now, error: null }) as const)
  const ended = await endJobs(tx, ends)
  return ended.map((row) => ({
    jobId: row[COLUMN.id],
    accountId: row[COLUMN.accountId],
    version: row[COLUMN.version],
    status: 'expired',
  }))
}

interface RemoveInput {
  readonly now: number
  readonly expiredBefore: number
  readonly limit: number
}

const FIND_OLD = statement<[id: string]>(
  'jobs.find_old',
  `(SELECT id FROM job_done WHERE expires_at <= $1 AND status <> 'expired' LIMIT $3)
   UNION ALL (SELECT id FROM job_done WHERE status = 'expired' AND completed_at <= $2 LIMIT $3) LIMIT $3`,
)
type Removed = readonly [
  accountId: string,
  status: string,
  id: string,
  createdAt: number,
  expiresAt: number,
  metadata: string | null,
]

const DELETE_DONE = statement<Removed>(
  'jobs.delete_done',
  'DELETE FROM job_done WHERE id = ANY($1::uuid[]) RETURNING account_id, status, id, created_at, expires_at, metadata',
)
const DELETE_CHOSEN = statement('jobs.delete_chosen', 'DELETE FROM job_id_chosen WHERE id = ANY($1::uuid[])')
const DELETE_OUTPUTS = statement<OutputRecord>(
  'jobs.delete_outputs',
  'DELETE FROM output WHERE job_id = ANY($1::uuid[]) RETURNING account_id, hash, size_bytes',
)
const DELETE_LABELS = statement(
  'jobs.delete_labels',
  `DELETE FROM job_label AS label
   USING unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::uuid[], $6::bigint[])
     AS gone(account_id, key, value, created_at, job_id, expires_at)
   WHERE label.account_id = gone.account_id AND label.key = gone.key AND label.value = gone.value
     AND label.created_at = gone.created_at AND label.job_id = gone.job_id AND label.expires_at = gone.expires_at`,
)
const DELETE_PARTS = ['job_text', 'job_log'].map((table) =>
  statement(`jobs.delete_${table}`, `DELETE FROM ${table} WHERE job_id = ANY($1::uuid[])`),
)

export type OutputRecord = readonly [accountId: string, hash: string, sizeBytes: number]

/** How many were removed. */
export async function removeJobs(tx: Queryable, { now, expiredBefore, limit }: RemoveInput): Promise<number> {
  const ids = (await tx.all(FIND_OLD, [now, expiredBefore, limit])).map(([id]) => id)
  return removeEnded(tx, ids, now)
}

/** Removes ended jobs with everything that belongs to them. */
export async function removeEnded(tx: Queryable, ids: readonly string[], now: number): Promise<number> {
  if (ids.length === 0) return 0
  const [removed, outputs] = await Promise.all([
    tx.all(DELETE_DONE, [ids]),
    tx.all(DELETE_OUTPUTS, [ids]),
    tx.run(DELETE_CHOSEN, [ids]),
    ...DELETE_PARTS.map((remove) => tx.run(remove, [ids])),
  ])
  await removeLabels(tx, removed)
  await giveBackCounts(tx, removed)
  await giveBackOutputs(tx, outputs, now)
  return removed.length
}

async function removeLabels(tx: Queryable, removed: readonly Removed[]): Promise<void> {
  const labels = removed.flatMap(([accountId, , id, createdAt, expiresAt, metadata]) => {
    const pairs = metadata === null ? [] : Object.entries(JSON.parse(metadata) as Record<string, string>)
    return pairs.map(([key, value]) => ({
      accountId,
      key,
      value,
      createdAt,
      id,
      expiresAt,
    }))
  })
  if (labels.length === 0) return
  await tx.run(DELETE_LABELS, [
    labels.map(({ accountId }) => accountId),
    labels.map(({ key }) => key),
    labels.map(({ value }) => value),
    labels.map(({ createdAt }) => createdAt),
    labels.map(({ id }) => id),
    labels.map(({ expiresAt }) => expiresAt),
  ])
}

const LOCK_LOADS = statement(
  'jobs.lock_loads',
  'SELECT 1 FROM account_load WHERE account_id = ANY($1::text[]) ORDER BY account_id FOR NO KEY UPDATE',
)
const COUNT_GONE = statement(
  'jobs.count_gone',
  `UPDATE account_load AS load SET succeeded = load.succeeded - gone.succeeded, canceled = load.canceled - gone.canceled,
     failed = load.failed - gone.failed, expired = load.expired - gone.expired
   FROM (
     SELECT account_id, count(*) FILTER (WHERE status = 'succeeded') AS succeeded,
       count(*) FILTER (WHERE status = 'canceled') AS canceled, count(*) FILTER (WHERE status = 'failed') AS failed,
       count(*) FILTER (WHERE status = 'expired') AS expired
     FROM unnest($1::text[], $2::text[]) AS job(account_id, status) GROUP BY account_id) AS gone
   WHERE load.account_id = gone.account_id`,
)

/** Jobs that are kept no longer, each as its account and status. */
export async function giveBackCounts(
  tx: Queryable,
  gone: readonly (readonly [accountId: string, status: string, ...unknown[]])[],
): Promise<void> {
  if (gone.length === 0) return
  const accountIds = gone.map(([accountId]) => accountId)
  await Promise.all([
    tx.run(LOCK_LOADS, [[...new Set(accountIds)]]),
    tx.run(COUNT_GONE, [accountIds, gone.map(([, status]) => status)]),
  ])
}

/** Outputs that are kept no longer: they stop counting for storage, and their blobs may go. */
export async function giveBackOutputs(tx: Queryable, outputs: readonly OutputRecord[], now: number): Promise<void> {
  if (outputs.length === 0) return
  await removeRecords(
    tx,
    outputs.map(([accountId, hash]) => ({ accountId, hash })),
  )
  await offerBlobs(
    tx,
    outputs.map(([, hash, sizeBytes]) => ({ hash, sizeBytes })),
    now,
  )
}
