/** Cancel: a queued job ends at once, a running one is marked for its worker, anything else stays as it is. */
import { isUuid } from '../../../../../lib/ids.ts'
import type { CancelOutcome } from '../../../../domain/jobs/job-store.ts'
import { afterCancel, isTerminal, mustMove } from '../../../../domain/jobs/transitions.ts'
import { type JobRow, toJob } from '../../rows/jobs/job.ts'
import { get, type Steps } from '../../statements/operation.ts'
import { query } from '../../statements/statement.ts'
import { jobRow } from '../../tables/jobs.ts'
import { endJobs } from './end-jobs.ts'
import { findVisible, LIVE_COLUMNS, listOutputs } from './find-job.ts'

export const LOCK = query('jobs.lockForCancel', jobRow, (words) =>
  words.dialect === 'sqlite'
    ? null
    : `SELECT ${LIVE_COLUMNS(words)} FROM job WHERE id = :jobId AND account_id = :accountId FOR NO KEY UPDATE`,
)
const MARK = query(
  'jobs.markCanceling',
  jobRow,
  (words) =>
    `UPDATE job SET status = 'canceling', version = version + 1 WHERE id = :jobId RETURNING ${LIVE_COLUMNS(words)}`,
)

export type FoundCancel = Exclude<CancelOutcome, { readonly outcome: 'not_found' }>

/** null: there is no such job. An audit line calls that refused. */
export function* cancelJob(
  accountId: string,
  jobId: string,
  now: Date,
  isOnlyQueued = false,
): Steps<FoundCancel | null> {
  if (!isUuid(jobId)) return null
  // A job that ended while its lock was waited for is found among those that have ended.
  const found = (yield* get(LOCK, { jobId, accountId })) ?? (yield* findVisible(accountId, jobId, now))
  if (found === null) return null
  const { status: from } = found
  const to = afterCancel(from)
  if (to === null) return yield* answer(isTerminal(from) ? 'already_terminal' : 'canceling', found)
  if (to === 'canceling') {
    if (isOnlyQueued) return yield* answer('left_running', found)
    mustMove(from, to)
    return yield* answer('canceling', (yield* get(MARK, { jobId })) ?? found)
  }
  const [ended = found] = yield* endJobs([{ id: jobId, from, to, at: now, error: null }])
  return yield* answer('canceled', ended)
}

function* answer(outcome: FoundCancel['outcome'], row: JobRow): Steps<FoundCancel> {
  return { outcome, job: toJob(row, yield* listOutputs(row), null) }
}
