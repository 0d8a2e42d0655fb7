/** Reads of one job. A job of another account and one past its retention look exactly like one that never was. */

import type { DatabaseSync } from 'node:sqlite'
import type { JobRow, StoredJob } from '../../../rows/jobs/job-row.ts'
import { prepareRows } from '../statement.ts'
import { type CompleteJob, JOB_COLUMNS } from './job-row.ts'

export interface JobQuery {
  readonly accountId: string
  readonly jobId: string
  readonly now: number
}

// Live jobs past their deadline still show, until the sweep makes them `expired`; those show until they are removed.
export const IS_RETAINED = `(expires_at > ?3 OR status NOT IN ('succeeded', 'failed', 'canceled'))`

const IS_VISIBLE = `id = ?1 AND account_id = ?2 AND ${IS_RETAINED}`

type SelectJob = (accountId: string, jobId: string, now: number) => JobRow | null

export function prepareSelectJob(database: DatabaseSync): SelectJob {
  const select = prepareRows<JobRow>(database, `SELECT ${JOB_COLUMNS} FROM job WHERE ${IS_VISIBLE}`)
  return (accountId, jobId, now) => select.get(jobId, accountId, now) ?? null
}

export function prepareFindJob(
  database: DatabaseSync,
  { completeJob }: { readonly completeJob: CompleteJob },
): (query: JobQuery) => StoredJob | null {
  const selectJob = prepareSelectJob(database)
  return ({ accountId, jobId, now }) => {
    const row = selectJob(accountId, jobId, now)
    return row === null ? null : completeJob(row)
  }
}
