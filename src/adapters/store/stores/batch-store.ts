/** Batches: their submit, how they stand, and the end of their retention. */
import { isUuid } from '../../../../lib/ids.ts'
import type { BatchStore } from '../../../domain/jobs/batches/batch-store.ts'
import type { Progress } from '../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'
import { all, chore, defineStore, get, type OpenStore, read, run } from '../statements/operation.ts'
import { both, command, query, selectFrom } from '../statements/statement.ts'
import { jobBatch } from '../tables/job-tables.ts'
import { json, nullable, shape, text } from '../tables/table.ts'
import { inSlices } from './in-slices.ts'
import { createBatchSubmits, type SubmitSteps } from './jobs/submits.ts'

const FIND = query(
  'batches.find',
  jobBatch,
  selectFrom(jobBatch, 'WHERE id = :batchId AND account_id = :accountId AND expires_at > :now'),
)
const FIND_JOBS = query(
  'batches.findJobs',
  shape({ id: text(), status: text<JobStatus>(), progress: nullable(json<Progress>()) }),
  both({
    sqlite: `
      SELECT job.id, status, CASE WHEN status IN ('running', 'canceling') THEN progress END AS progress
      FROM (SELECT value FROM json_each(:ids)) AS item JOIN job ON job.id = item.value
      WHERE expires_at > :now OR status NOT IN ('succeeded', 'failed', 'canceled')`,
    // The expiry names the partition.
    postgres: `
      SELECT either.id, either.status, either.progress FROM unnest(:ids::uuid[]) AS item(id) CROSS JOIN LATERAL (
        SELECT id, status, CASE WHEN status IN ('running', 'canceling') THEN progress END AS progress FROM job WHERE id = item.id
        UNION ALL
        SELECT id, status, NULL FROM job_done WHERE id = item.id AND expires_at = :expiresAt OFFSET 0) AS either`,
  }),
)
const SWEEP = command('batches.sweep', ({ either }) => {
  const old = `SELECT id FROM job_batch WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit`
  return `DELETE FROM job_batch WHERE id ${either(`IN (${old})`, `= ANY (ARRAY(${old} FOR UPDATE SKIP LOCKED))`)}`
})

interface BatchSteps extends Pick<BatchStore, 'find'> {
  sweepSome(now: Date, limit: number): Promise<number>
}

export const batchSteps = defineStore<BatchSteps>('batches', {
  find: read(function* (accountId, batchId, now) {
    const batch = isUuid(batchId) ? yield* get(FIND, { accountId, batchId, now }) : undefined
    if (batch === undefined) return null
    const ids = batch.jobIds.filter((id) => id !== null)
    const jobs = yield* all(FIND_JOBS, { ids, expiresAt: batch.expiresAt, now })
    const states = jobs.map(({ id, status, progress }) => [id, { status, progress: progress?.value ?? null }] as const)
    return { ...batch, states: new Map(states) }
  }),
  sweepSome: chore(
    function* (now, limit) {
      return yield* run(SWEEP, { now, limit })
    },
    { isEssential: true },
  ),
})

export function createBatchStore(open: OpenStore, steps: Pick<SubmitSteps, 'submitBatch'>): BatchStore {
  const { find, sweepSome } = open(batchSteps)
  return {
    submit: createBatchSubmits(steps),
    find,
    sweep: (now) => inSlices((limit) => sweepSome(now, limit)),
  }
}
