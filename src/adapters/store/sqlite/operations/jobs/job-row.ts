/** A job on its way out of the store: its row, its outputs and its position in the queue, and the way back to a `Job`. */
import type { DatabaseSync } from 'node:sqlite'
import type { Job, JobError, Progress } from '../../../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { type OutputRow, prepareOutputs, toOutput } from './job-outputs.ts'
import { type PositionedJob, preparePositionNear, prepareQueuePosition, type QueuedJob } from './queue-position.ts'

export const JOB_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, completed_at, expires_at,
  attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress, error`

export type JobRow = readonly [
  seq: number,
  id: string,
  accountId: string,
  pool: string,
  status: JobStatus,
  priority: number,
  createdAt: number,
  startedAt: number | null,
  completedAt: number | null,
  expiresAt: number,
  attempt: number,
  version: number,
  outputCount: number,
  outputsReused: number,
  outputsReplaced: number,
  metadata: string | null,
  progress: string | null,
  error: string | null,
]

/** Where single columns stand in a row. */
export const COLUMN = {
  seq: 0,
  id: 1,
  accountId: 2,
  pool: 3,
  status: 4,
  priority: 5,
  startedAt: 7,
  attempt: 10,
  version: 11,
  outputCount: 12,
  outputsReplaced: 14,
} as const

export type StoredJob = readonly [row: JobRow, outputs: readonly OutputRow[] | null, queuePosition: number | null]

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

function toDate(millis: number | null): Date | null {
  return millis === null ? null : new Date(millis)
}

export function toJob([row, outputs, queuePosition]: StoredJob): Job {
  const [, id, accountId, pool, status, priority, createdAt, startedAt, completedAt, expiresAt, ...rest] = row
  const [attempt, version, , outputsReused, outputsReplaced, metadata, progress, error] = rest
  return {
    ...{ id, accountId, pool, status, priority },
    metadata: metadata === null ? {} : (JSON.parse(metadata) as Record<string, string>),
    createdAt: new Date(createdAt),
    startedAt: toDate(startedAt),
    completedAt: toDate(completedAt),
    expiresAt: new Date(expiresAt),
    queuePosition,
    progress: progress === null ? null : (JSON.parse(progress) as Progress),
    outputs: outputs === null ? [] : outputs.map(toOutput),
    error: error === null ? null : (JSON.parse(error) as JobError),
    outputsReused: outputsReused === 1,
    outputsReplaced,
    attempt,
    version,
  }
}
