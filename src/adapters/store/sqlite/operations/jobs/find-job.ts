/** Reads of one job. A job of another account and one past its retention look exactly like one that never was. */

import type { DatabaseSync } from 'node:sqlite'
import type { JobLog } from '../../../../../domain/jobs/job.ts'
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

export function prepareFindOwner(database: DatabaseSync): (jobId: string) => string | null {
  const select = prepareRows<[string]>(database, 'SELECT account_id FROM job WHERE id = ?')
  return (jobId) => select.get(jobId)?.[0] ?? null
}

export function prepareFindHolders(database: DatabaseSync): (jobIds: readonly string[]) => [string, string][] {
  const select = prepareRows<[jobId: string, workerId: string]>(
    database,
    `SELECT id, worker_id FROM job WHERE id IN (SELECT value FROM json_each(?))
     AND status IN ('running', 'canceling') AND lease_id IS NOT NULL AND worker_id IS NOT NULL`,
  )
  return (jobIds) => select.all(JSON.stringify(jobIds))
}

export function prepareFindWorkflow(database: DatabaseSync): (query: JobQuery) => string | null {
  const select = prepareRows<[string]>(
    database,
    `SELECT text FROM job JOIN job_workflow USING (seq) WHERE ${IS_VISIBLE}`,
  )
  return ({ accountId, jobId, now }) => select.get(jobId, accountId, now)?.[0] ?? null
}

export function prepareFindLog(database: DatabaseSync): (query: JobQuery) => JobLog | null {
  const select = prepareRows<
    [text: string, truncated: number, capturedAt: number, complete: number, marks: string | null]
  >(
    database,
    `SELECT text, truncated, captured_at, complete, marks FROM job JOIN job_log USING (seq) WHERE ${IS_VISIBLE}`,
  )
  return ({ accountId, jobId, now }) => {
    const row = select.get(jobId, accountId, now)
    if (row === undefined) return null
    const [text, truncated, capturedAt, complete, marks] = row
    const told = { text, truncated: truncated === 1, capturedAt: new Date(capturedAt), complete: complete === 1 }
    return marks === null ? told : { ...told, marks }
  }
}
