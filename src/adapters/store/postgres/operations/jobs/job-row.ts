/**
 * Which columns make the row of a job, and its outputs. A live job (`job`) and an ended one (`job_done`) give rows of the same
 * shape, so one statement can ask for both.
 */
import { COLUMN, type JobRow, type OutputRow } from '../../../rows/jobs/job-row.ts'
import type { Queryable } from '../../database/statement.ts'
import { findOutputs } from './job-outputs.ts'

export const LIVE_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, NULL::bigint AS completed_at,
  expires_at, attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress, NULL::text AS error,
  NULL::uuid AS reused_from`

export const DONE_COLUMNS = `seq, id, account_id, pool, status, priority, created_at, started_at, completed_at,
  expires_at, attempt, version, output_count, outputs_reused, outputs_replaced, metadata, progress, error, reused_from`

/** Bits of `needs_extra_data`: what a claim reads beside the job. */
export const HAS_CREDENTIALS = 1
export const HAS_NOTES = 2
export const HAS_TRACE = 4
/** Its end leaves a row in `job_result`. */
export const KEEPS_RESULT = 8

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
