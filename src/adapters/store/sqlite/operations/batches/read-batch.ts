/** Batches as they stand, and the end of their retention. */
import type { DatabaseSync } from 'node:sqlite'
import { BATCH_COLUMNS, type BatchJobRow, type BatchRow } from '../../../rows/jobs/batch-row.ts'
import { IS_RETAINED } from '../jobs/find-job.ts'
import { prepareRows } from '../statement.ts'

interface BatchQuery {
  readonly accountId: string
  readonly batchId: string
  readonly now: number
}

export function prepareFindBatch(
  database: DatabaseSync,
): (query: BatchQuery) => readonly [BatchRow, readonly BatchJobRow[]] | null {
  const select = prepareRows<BatchRow>(
    database,
    `SELECT ${BATCH_COLUMNS} FROM job_batch WHERE id = ? AND account_id = ? AND expires_at > ?`,
  )
  const selectJobs = prepareRows<BatchJobRow>(
    database,
    `SELECT job.id, status, CASE WHEN status IN ('running', 'canceling') THEN progress END
     FROM json_each(?1) AS item JOIN job ON job.id = item.value WHERE ${IS_RETAINED}`,
  )
  return ({ accountId, batchId, now }) => {
    const row = select.get(batchId, accountId, now)
    return row === undefined ? null : [row, selectJobs.all(row[7], null, now)]
  }
}

export function prepareSweepBatches(
  database: DatabaseSync,
): (sweep: { readonly now: number; readonly limit: number }) => number {
  const remove = database.prepare(`
    DELETE FROM job_batch WHERE id IN (SELECT id FROM job_batch WHERE expires_at <= ? ORDER BY expires_at LIMIT ?)`)
  return ({ now, limit }) => Number(remove.run(now, limit).changes)
}
