/** A job as both stores select it, its outputs and its position in the queue beside it, and the way back to a `Job`. */
import type { Job, JobError, Output, OutputType, Progress } from '../../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../../domain/jobs/transitions.ts'
import { toDate } from '../row-date.ts'

/** What every row of a job begins with. */
type JobRowHead = readonly [
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
]

export type JobRow = readonly [
  ...head: JobRowHead,
  outputsReused: number,
  outputsReplaced: number,
  metadata: string | null,
  progress: string | null,
  error: string | null,
  reusedFrom: string | null,
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

export type OutputRow = readonly [
  assetId: string,
  nodeId: string,
  name: string,
  type: OutputType,
  contentType: string,
  sizeBytes: number,
  hash: string,
]

function toOutput([assetId, nodeId, name, type, contentType, sizeBytes, hash]: OutputRow): Output {
  return { assetId, nodeId, name, type, contentType, sizeBytes, hash }
}

export type StoredJob = readonly [row: JobRow, outputs: readonly OutputRow[] | null, queuePosition: number | null]

export function toJob([row, outputs, queuePosition]: StoredJob): Job {
  const [, id, accountId, pool, status, priority, createdAt, startedAt, completedAt, expiresAt, ...rest] = row
  const [attempt, version, , outputsReused, outputsReplaced, metadata, progress, error, reusedFrom] = rest
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
    ...(reusedFrom !== null && { reusedFrom }),
    attempt,
    version,
  }
}
