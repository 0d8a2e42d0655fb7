/** A batch as both stores select it, and the way back. */
import type { BatchLimit, RefusedItem, StoredBatch } from '../../../../domain/jobs/batches/batch.ts'
import type { NewBatch } from '../../../../domain/jobs/batches/batch-store.ts'
import type { JobStatus } from '../../../../domain/jobs/transitions.ts'

export const BATCH_COLUMNS = 'id, account_id, pool, created_at, expires_at, is_whole, digest, jobs, refused, limited_by'

export type BatchRow = readonly [
  id: string,
  accountId: string,
  pool: string,
  createdAt: number,
  expiresAt: number,
  isWhole: number,
  digest: string,
  jobs: string,
  refused: string,
  limitedBy: BatchLimit | null,
]

export type BatchJobRow = readonly [id: string, status: JobStatus, progress: string | null]

/** `accepted`: how many of its jobs are. */
export function toBatchRow(batch: NewBatch, accepted: number, limitedBy: BatchLimit | null): BatchRow {
  const { id, isWhole, digest, total, jobs, refused } = batch
  const { accountId, pool, createdAt, expiresAt } = jobs[0]!.job
  const ids: (string | null)[] = Array.from({ length: total }, () => null)
  for (const { index, job } of jobs.slice(0, accepted)) ids[index] = job.id
  const times = [createdAt.getTime(), expiresAt.getTime()] as const
  return [
    id,
    accountId,
    pool,
    ...times,
    isWhole ? 1 : 0,
    digest,
    JSON.stringify(ids),
    JSON.stringify(refused),
    limitedBy,
  ]
}

export function toStoredBatch(row: BatchRow, jobs: readonly BatchJobRow[]): StoredBatch {
  const [id, accountId, pool, createdAt, expiresAt, isWhole, digest, ids, refused, limitedBy] = row
  return {
    ...{ id, accountId, pool, digest, limitedBy },
    createdAt: new Date(createdAt),
    expiresAt: new Date(expiresAt),
    isWhole: isWhole === 1,
    jobIds: JSON.parse(ids) as (string | null)[],
    refused: JSON.parse(refused) as RefusedItem[],
    states: new Map(jobs.map(([jobId, status, progress]) => [jobId, { status, progress: readProgress(progress) }])),
  }
}

function readProgress(text: string | null): number | null {
  return text === null ? null : (JSON.parse(text) as { readonly value: number }).value
}

/** How many of them fit, taken one after the other, and what keeps the next one out. */
export function fitBatch(
  wanted: number,
  { room, affordable }: { readonly room: number; readonly affordable: number },
): { readonly accepted: number; readonly limitedBy: BatchLimit | null } {
  const accepted = Math.max(0, Math.min(wanted, room, affordable))
  if (accepted === wanted) return { accepted, limitedBy: null }
  // Credit is looked at first.
  return { accepted, limitedBy: affordable <= room ? 'insufficient_credits' : 'queue_full' }
}
