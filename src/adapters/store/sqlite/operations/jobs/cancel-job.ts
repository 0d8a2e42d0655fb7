/** Cancel: a queued job ends at once, a running one is marked for its worker, anything else stays as it is. */
import type { DatabaseSync } from 'node:sqlite'
import { isTerminal } from '../../../../../domain/jobs/transitions.ts'
import { prepareEndJob } from './end-job.ts'
import { prepareSelectJob } from './find-job.ts'
import type { CompleteJob, StoredJob } from './job-row.ts'

export interface CancelInput {
  readonly accountId: string
  readonly jobId: string
  readonly now: number
}

export type CancelAnswer = readonly [outcome: 'canceled' | 'canceling' | 'already_terminal', job: StoredJob] | null

export function prepareCancel(
  database: DatabaseSync,
  { completeJob }: { readonly completeJob: CompleteJob },
): (input: CancelInput) => CancelAnswer {
  const selectJob = prepareSelectJob(database)
  const mark = database.prepare(`UPDATE job SET status = 'canceling', version = version + 1 WHERE seq = ?`)
  const endJob = prepareEndJob(database)
  return ({ accountId, jobId, now }) => {
    const row = selectJob(accountId, jobId, now)
    if (row === null) return null
    const [seq, , , , from] = row
    if (isTerminal(from)) return ['already_terminal', completeJob(row)]
    if (from === 'canceling') return ['canceling', completeJob(row)]
    if (from === 'queued') endJob({ seq, accountId, from, to: 'canceled', at: now, error: null })
    else mark.run(seq)
    return [from === 'queued' ? 'canceled' : 'canceling', completeJob(selectJob(accountId, jobId, now) ?? row)]
  }
}
