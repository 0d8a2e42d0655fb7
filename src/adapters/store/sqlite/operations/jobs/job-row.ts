/** A job on its way out of the store: its row, its outputs and its position in the queue, and the way back to a `Job`. */

import type { DatabaseSync } from 'node:sqlite'
import { COLUMN, type JobRow, type StoredJob } from '../../../rows/jobs/job-row.ts'
import { prepareOutputs } from './job-outputs.ts'
import { type PositionedJob, preparePositionNear, prepareQueuePosition, type QueuedJob } from './queue-position.ts'

export const JOB_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, completed_at, expires_at,
  attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress, error, reused_from`

/** Adds to a row what stands in other tables. `neighbour`: the one before it on a page. */
export type CompleteJob = (row: JobRow, neighbour?: StoredJob) => StoredJob

export function prepareCompleteJob(database: DatabaseSync): CompleteJob {
  const selectOutputs = prepareOutputs(database)
  const queuePosition = prepareQueuePosition(database)
  const positionNear = preparePositionNear(database)
  return (row, neighbour) => {
    const outputs = row[COLUMN.outputCount] === 0 ? null : selectOutputs(row[COLUMN.seq])
    if (row[COLUMN.status] !== 'queued') return [row, outputs, null]
    const positioned = neighbour === undefined ? null : toPositioned(neighbour)
    const job = toQueued(row)
    return [row, outputs, (positioned === null ? null : positionNear(job, positioned)) ?? queuePosition(job)]
  }
}

function toQueued(row: JobRow): QueuedJob {
  return {
    seq: row[COLUMN.seq],
    accountId: row[COLUMN.accountId],
    pool: row[COLUMN.pool],
    priority: row[COLUMN.priority],
  }
}

function toPositioned([row, , position]: StoredJob): PositionedJob | null {
  return position === null ? null : { ...toQueued(row), position }
}
