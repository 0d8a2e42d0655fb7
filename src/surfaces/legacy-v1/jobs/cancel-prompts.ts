/** Cancels several jobs and returns those that it canceled, as they are afterwards. Unknown ids, ended jobs and jobs of others are passed over. */
import { ServiceError } from '../../../domain/errors.ts'
import type { CancelJob } from '../../../domain/jobs/end/cancel-job.ts'
import type { Job } from '../../../domain/jobs/job.ts'
import type { JobReader } from '../../../domain/jobs/read/job-reader.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'

interface CancelDeps {
  readonly accountId: string
  readonly cancel: CancelJob
  readonly find: JobReader['find']
}

export async function cancelAll(ids: readonly string[], { accountId, cancel, find }: CancelDeps): Promise<Job[]> {
  const canceled: Job[] = []
  for (const id of ids) {
    try {
      const before = await find(accountId, id)
      if (isTerminal(before.status)) continue
      canceled.push(await cancel(accountId, id))
    } catch (error) {
      if (!(error instanceof ServiceError && error.refusal === 'not_found')) throw error
    }
  }
  return canceled
}
