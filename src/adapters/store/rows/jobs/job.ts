/** The way from the row of a job, its outputs and its position in the queue to a `Job`. */
import type { Job, Output } from '../../../../domain/jobs/job.ts'
import { toToldJob } from '../../../../domain/jobs/outputs/hidden-runs.ts'
import type { jobRow } from '../../tables/jobs.ts'
import type { RowOf } from '../../tables/table.ts'

export type JobRow = RowOf<typeof jobRow>

/** Bits of `needs_extra_data`: what a claim reads beside the job. A job without any of it costs no look for it. */
export const HAS_CREDENTIALS = 1
export const HAS_NOTES = 2
export const HAS_TRACE = 4
/** Its end leaves a row in `job_result`. */
export const KEEPS_RESULT = 8

/**
 * How far below its own the stored priority of a job is that is held until a time. No priority comes near it, so a held job stands behind
 * all that may run, and whoever looks at the first job of an account sees a held one only where all of them are.
 */
export const HELD_BELOW = 10_000_000
/** Stored priorities below this one are those of held jobs. Indexes name it, too. */
export const HELD_LIMIT = -HELD_BELOW / 2

/** As its owner knows it. */
export function toPriority(stored: number): number {
  return stored < HELD_LIMIT ? stored + HELD_BELOW : stored
}

export function toJob(row: JobRow, outputs: readonly Output[], queuePosition: number | null): Job {
  const { id, accountId, pool, status, createdAt, startedAt, completedAt, expiresAt, attempt, version } = row
  const { progress, error, outputsReused, outputsReplaced, metadata, reusedFrom, notBefore, queueUntil } = row
  const priority = toPriority(row.priority)
  return toToldJob({
    ...{ id, accountId, pool, status, priority, createdAt, startedAt, completedAt, expiresAt, attempt, version },
    ...{ progress, error, outputsReused, outputsReplaced, queuePosition, outputs, metadata: metadata ?? {} },
    ...(reusedFrom !== null && { reusedFrom }),
    ...(notBefore !== null && { notBefore }),
    ...(queueUntil !== null && { queueUntil }),
  })
}
