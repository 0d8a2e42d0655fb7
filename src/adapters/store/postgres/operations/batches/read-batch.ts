/** Batches as they stand, and the end of their retention. */
import { BATCH_COLUMNS, type BatchJobRow, type BatchRow } from '../../../rows/jobs/batch-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'

interface BatchQuery {
  readonly accountId: string
  readonly batchId: string
  readonly now: number
}

const FIND = statement<BatchRow>(
  'batches.find',
  `SELECT ${BATCH_COLUMNS} FROM job_batch WHERE id = $1 AND account_id = $2 AND expires_at > $3`,
)
// The expiry names the partition.
const FIND_JOBS = statement<BatchJobRow>(
  'batches.find_jobs',
  `SELECT either.id, either.status, either.progress
   FROM unnest($1::uuid[]) AS item(id) CROSS JOIN LATERAL (
     SELECT id, status, CASE WHEN status IN ('running', 'canceling') THEN progress END AS progress FROM job WHERE id = item.id
     UNION ALL
     SELECT id, status, NULL FROM job_done WHERE id = item.id AND expires_at = $2 OFFSET 0) AS either`,
)

export async function findBatch(
  read: Queryable,
  { accountId, batchId, now }: BatchQuery,
): Promise<readonly [BatchRow, readonly BatchJobRow[]] | null> {
  const row = await read.get(FIND, [batchId, accountId, now])
  if (row === undefined) return null
  const [, , , , expiresAt, , , jobs] = row
  const ids = (JSON.parse(jobs) as (string | null)[]).filter((id) => id !== null)
  return [row, await read.all(FIND_JOBS, [ids, expiresAt])]
}

const SWEEP = statement(
  'batches.sweep',
  `DELETE FROM job_batch WHERE id = ANY (ARRAY(
     SELECT id FROM job_batch WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED))`,
)

export function sweepBatches(db: Queryable, sweep: { readonly now: number; readonly limit: number }): Promise<number> {
  return db.run(SWEEP, [sweep.now, sweep.limit])
}
