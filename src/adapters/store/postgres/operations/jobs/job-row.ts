/**
 * A job on its way out of the store: its row, its outputs and its position in the queue, and the way back to a `Job`. A live job
 * (`job`) and an ended one (`job_done`) give rows of the same shape, so one statement can ask for both.
 */
import type { Job, JobError, Progress } from '../../../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import type { Queryable } from '../../database/statement.ts'
import { findOutputs, type OutputRow, toOutput } from './job-outputs.ts'

export const LIVE_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, NULL::bigint AS completed_at,
  expires_at, attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress, NULL::text AS error`

export const DONE_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, completed_at,
  expires_at, attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress, error`

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
  createdAt: 6,
  startedAt: 7,
  completedAt: 8,
  expiresAt: 9,
  attempt: 10,
  version: 11,
  outputCount: 12,
  outputsReplaced: 14,
  error: 17,
} as const

/** Bits of `needs_extra_data`: what lies beside the job until it ends. */
export const HAS_CREDENTIALS = 1
export const HAS_NOTES = 2

export type StoredJob = readonly [row: JobRow, outputs: readonly OutputRow[] | null, queuePosition: number | null]

/** The listed outputs of these jobs, by job id. Costs nothing where there are none. */
export async function findOutputsOf(
  db: Queryable,
  rows: readonly JobRow[],
): Promise<ReadonlyMap<string, readonly OutputRow[]>> {
  const jobs = rows.filter((row) => row[COLUMN.outputCount] > 0)
  if (jobs.length === 0) return new Map()
  return findOutputs(
    db,
    jobs.map((row) => ({ id: row[COLUMN.id], expiresAt: row[COLUMN.expiresAt] })),
  )
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
