/** A batch as both stores insert it. */
import type { BatchLimit } from '../../../../domain/jobs/batches/batch.ts'
import type { NewBatch } from '../../../../domain/jobs/batches/batch-store.ts'

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
