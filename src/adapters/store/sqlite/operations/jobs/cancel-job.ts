/** Cancel: a queued job ends at once, a running one is marked for its worker, anything else stays as it is. */

import type { DatabaseSync } from 'node:sqlite'
import { isTerminal } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN, type StoredJob } from '../../../rows/jobs/job-row.ts'
import { prepareEndJob } from './end-job.ts'
import { prepareSelectJob } from './find-job.ts'
import type { CompleteJob } from './job-row.ts'

interface CancelInput {
  readonly accountId: string
  readonly jobId: string
  readonly now: number
  readonly isOnlyQueued: boolean
}

/** null: there is no such job. */
export type CancelAnswer = {
  readonly outcome: 'canceled' | 'canceling' | 'already_terminal' | 'left_running'
  readonly job: StoredJob
} | null

export function prepareCancel(
  database: DatabaseSync,
  { completeJob }: { readonly completeJob: CompleteJob },
): (input: CancelInput) => CancelAnswer {
  const selectJob = prepareSelectJob(database)
  const mark = database.prepare(`UPDATE job SET status = 'canceling', version = version + 1 WHERE seq = ?`)
  const endJob = prepareEndJob(database)
  return ({ accountId, jobId, now, isOnlyQueued }) => {
    const row = selectJob(accountId, jobId, now)
    if (row === null) return null
    const [seq, from] = [row[COLUMN.seq], row[COLUMN.status]]
    if (isTerminal(from)) return { outcome: 'already_terminal', job: completeJob(row) }
    if (from === 'canceling') return { outcome: 'canceling', job: completeJob(row) }
    if (from === 'running' && isOnlyQueued) return { outcome: 'left_running', job: completeJob(row) }
    if (from === 'queued') endJob({ seq, accountId, from, to: 'canceled', at: now, error: null })
    else mark.run(seq)
    const job = completeJob(selectJob(accountId, jobId, now) ?? row)
    return { outcome: from === 'queued' ? 'canceled' : 'canceling', job }
  }
}
