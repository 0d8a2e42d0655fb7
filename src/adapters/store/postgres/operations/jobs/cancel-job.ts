/** Cancel: a queued job ends at once, a running one is marked for its worker, anything else stays as it is. */

import { isUuid } from '../../../../../../lib/ids.ts'
import type { CancelOutcome } from '../../../../../domain/jobs/job-store.ts'
import { COLUMN, type JobRow, toJob } from '../../../rows/job-row.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { endJobs } from './end-job.ts'
import type { JobQuery } from './find-job.ts'
import { DONE_COLUMNS, findOutputsOf, LIVE_COLUMNS } from './job-row.ts'

const LOCK = statement<JobRow>(
  'jobs.lock_for_cancel',
  `SELECT ${LIVE_COLUMNS} FROM job WHERE id = $1 AND account_id = $2 FOR NO KEY UPDATE`,
)
const FIND_DONE = statement<JobRow>(
  'jobs.find_done',
  `SELECT ${DONE_COLUMNS} FROM job_done
   WHERE id = $1 AND account_id = $2 AND (expires_at > $3 OR status = 'expired')`,
)
const MARK = statement<JobRow>(
  'jobs.mark_canceling',
  `UPDATE job SET status = 'canceling', version = version + 1 WHERE id = $1 RETURNING ${LIVE_COLUMNS}`,
)

export async function cancelJob(tx: Queryable, query: JobQuery): Promise<CancelOutcome> {
  const { accountId, jobId, now } = query
  if (!isUuid(jobId)) return { outcome: 'not_found' }
  // The second statement sees what the first one waited for: a job that ended meanwhile is found there.
  const [live, done] = await Promise.all([tx.get(LOCK, [jobId, accountId]), tx.get(FIND_DONE, [jobId, accountId, now])])
  if (live === undefined) return done === undefined ? { outcome: 'not_found' } : toOutcome(tx, 'already_terminal', done)
  const status = live[COLUMN.status]
  if (status === 'queued') {
    const [ended = live] = await endJobs(tx, [{ id: jobId, to: 'canceled', at: now, error: null }])
    return toOutcome(tx, 'canceled', ended)
  }
  return toOutcome(tx, 'canceling', status === 'canceling' ? live : ((await tx.get(MARK, [jobId])) ?? live))
}

async function toOutcome(
  tx: Queryable,
  outcome: 'canceled' | 'canceling' | 'already_terminal',
  row: JobRow,
): Promise<CancelOutcome> {
  const outputs = await findOutputsOf(tx, [row])
  return { outcome, job: toJob([row, outputs.get(row[COLUMN.id]) ?? null, null]) }
}
