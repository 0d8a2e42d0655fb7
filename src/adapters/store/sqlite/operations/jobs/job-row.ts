/** A job on its way out of the store: its row, its outputs and its place in the queue, and the way back to a `Job`. */
import type { DatabaseSync } from 'node:sqlite'
import type { Job, JobError, Output, OutputType, Progress } from '../../../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { prepareRows } from '../statement.ts'
import { type PlacedJob, preparePositionNear, prepareQueuePosition, type QueuedJob } from './queue-position.ts'

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

const VERSION = 11
const OUTPUT_COUNT = 12
const OUTPUTS_REPLACED = 14

export type OutputRow = readonly [
  assetId: string,
  nodeId: string,
  name: string,
  type: OutputType,
  contentType: string,
  sizeBytes: number,
  hash: string,
]

export type StoredJob = readonly [row: JobRow, outputs: readonly OutputRow[] | null, queuePosition: number | null]

export function versionOf(row: JobRow): number {
  return row[VERSION]
}

export function outputsReplacedOf(row: JobRow): number {
  return row[OUTPUTS_REPLACED]
}

/** Adds to a row what stands in other tables. `neighbour`: the one before it on a page. */
export type CompleteJob = (row: JobRow, neighbour?: StoredJob) => StoredJob

export function prepareOutputs(database: DatabaseSync): (seq: number) => OutputRow[] {
  const select = prepareRows<OutputRow>(
    database,
    `SELECT asset_id, node_id, name, type, content_type, size_bytes, hash FROM job_output WHERE seq = ? ORDER BY position`,
  )
  return (seq) => select.all(seq)
}

export function prepareCompleteJob(database: DatabaseSync): CompleteJob {
  const selectOutputs = prepareOutputs(database)
  const queuePosition = prepareQueuePosition(database)
  const positionNear = preparePositionNear(database)
  return (row, neighbour) => {
    const outputs = row[OUTPUT_COUNT] === 0 ? null : selectOutputs(row[0])
    if (row[4] !== 'queued') return [row, outputs, null]
    const placed = neighbour === undefined ? null : toPlaced(neighbour)
    const job = toQueued(row)
    return [row, outputs, (placed === null ? null : positionNear(job, placed)) ?? queuePosition(job)]
  }
}

function toQueued([seq, , accountId, pool, , priority]: JobRow): QueuedJob {
  return { seq, accountId, pool, priority }
}

function toPlaced([row, , position]: StoredJob): PlacedJob | null {
  return position === null ? null : { ...toQueued(row), position }
}

export function toOutput([assetId, nodeId, name, type, contentType, sizeBytes, hash]: OutputRow): Output {
  return { assetId, nodeId, name, type, contentType, sizeBytes, hash }
}

function toDate(millis: number | null): Date | null {
  return millis === null ? null : new Date(millis)
}

export function toJob([row, outputs, queuePosition]: StoredJob): Job {
  const [, id, accountId, pool, status, priority, createdAt, startedAt, completedAt, expiresAt, attempt, version] = row
  const [, outputsReused, outputsReplaced, metadata, progress, error] = row.slice(OUTPUT_COUNT) as [
    number,
    number,
    number,
    ...(string | null)[],
  ]
  return {
    id,
    accountId,
    pool,
    status,
    priority,
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
