/** The way from the row of a job, its outputs and its position in the queue to a `Job`. */
import type { Job, Output } from '../../../../domain/jobs/job.ts'
import type { jobRow } from '../../tables/jobs.ts'
import type { RowOf } from '../../tables/table.ts'

export type JobRow = RowOf<typeof jobRow>

/** Bits of `needs_extra_data`: what a claim reads beside the job. A job without any of it costs no look for it. */
export const HAS_CREDENTIALS = 1
export const HAS_NOTES = 2
export const HAS_TRACE = 4
/** Its end leaves a row in `job_result`. */
export const KEEPS_RESULT = 8

export function toJob(row: JobRow, outputs: readonly Output[], queuePosition: number | null): Job {
  const { id, accountId, pool, status, priority, createdAt, startedAt, completedAt, expiresAt, attempt, version } = row
  const { progress, error, outputsReused, outputsReplaced, metadata, reusedFrom } = row
  return {
    ...{ id, accountId, pool, status, priority, createdAt, startedAt, completedAt, expiresAt, attempt, version },
    ...{ progress, error, outputsReused, outputsReplaced, queuePosition, outputs, metadata: metadata ?? {} },
    ...(reusedFrom !== null && { reusedFrom }),
  }
}
