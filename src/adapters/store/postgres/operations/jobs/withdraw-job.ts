/** A job that ends before its submit was answered: its key may be used again, and nothing of it is charged or listed. */
import type { Lease } from '../../../../../domain/jobs/job-store.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { endJobs } from './end-job.ts'
import { removeEnded } from './job-retention.ts'

const LOCK = statement<[accountId: string]>(
  'jobs.lock_for_withdraw',
  `SELECT account_id FROM job WHERE id = $1 AND lease_id = $2 AND status = 'running' FOR NO KEY UPDATE`,
)
const DROP_KEY = statement('jobs.drop_key', 'DELETE FROM idempotency_key WHERE account_id = $1 AND job_id = $2')

export async function withdrawJob(tx: Queryable, { jobId, leaseId }: Lease, now: number): Promise<boolean> {
  const held = await tx.get(LOCK, [jobId, leaseId])
  if (held === undefined) return false
  const [accountId] = held
  await endJobs(tx, [{ id: jobId, to: 'failed', at: now, error: null, isLost: true }])
  await removeEnded(tx, [jobId], now)
  await tx.run(DROP_KEY, [accountId, jobId])
  return true
}
