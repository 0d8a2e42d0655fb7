/**
 * Cancel: a queued job ends at once, a running one is marked for its worker, anything else stays as it is. Cancels of one moment
 * share a transaction, whoever they come from; one that cannot be written fails alone.
 */

import { isUuid } from '../../../../../../lib/ids.ts'
import { isStoreAway } from '../../../../../domain/errors.ts'
import type { CancelOutcome } from '../../../../../domain/jobs/job-store.ts'
import { COLUMN, type JobRow, toJob } from '../../../rows/jobs/job-row.ts'
import type { Connected } from '../../database/connections.ts'
import { createGather } from '../../database/gather.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { endJobs } from './end-job.ts'
import type { JobQuery } from './find-job.ts'
import { DONE_COLUMNS, findOutputsOf, LIVE_COLUMNS } from './job-row.ts'

const LIVE = LIVE_COLUMNS.replace('seq, id, account_id', 'seq, job.id, job.account_id')
const DONE = DONE_COLUMNS.replace('seq, id, account_id', 'seq, job_done.id, job_done.account_id')
const ASKED = 'unnest($1::uuid[], $2::text[]) AS asked(id, account_id)'

const LOCK = statement<JobRow>(
  'jobs.lock_for_cancel',
  `SELECT ${LIVE} FROM ${ASKED} JOIN job ON job.id = asked.id AND job.account_id = asked.account_id
   ORDER BY job.id FOR NO KEY UPDATE OF job`,
)
const FIND_DONE = statement<JobRow>(
  'jobs.find_done',
  `SELECT ${DONE} FROM ${ASKED} JOIN job_done ON job_done.id = asked.id AND job_done.account_id = asked.account_id
   WHERE expires_at > $3 OR status = 'expired'`,
)
const MARK = statement<JobRow>(
  'jobs.mark_canceling',
  `UPDATE job SET status = 'canceling', version = version + 1 WHERE id = ANY($1::uuid[]) RETURNING ${LIVE_COLUMNS}`,
)

interface CancelQuery extends JobQuery {
  readonly isOnlyQueued: boolean
}

type Outcome = Exclude<CancelOutcome['outcome'], 'not_found'>

/** `isAgain`: an earlier try may have been committed. One answer for each, in their order; no two are about the same job. */
export async function cancelJobs(
  tx: Queryable,
  queries: readonly CancelQuery[],
  isAgain: boolean,
): Promise<CancelOutcome[]> {
  const asked = [queries.map(({ jobId }) => jobId), queries.map(({ accountId }) => accountId)]
  const nowOf = new Map(queries.map(({ jobId, now }) => [jobId, now]))
  // The second statement sees what the first one waited for: a job that ended meanwhile is found there.
  const [live, done] = await Promise.all([
    tx.all(LOCK, asked),
    tx.all(FIND_DONE, [...asked, Math.min(...nowOf.values())]),
  ])
  const isIn = (status: string) => (row: JobRow) => row[COLUMN.status] === status
  const ends = live.filter(isIn('queued')).map((row) => {
    const id = row[COLUMN.id]
    return { id, to: 'canceled' as const, at: nowOf.get(id) ?? 0, error: null }
  })
  const isSpared = new Set(queries.filter(({ isOnlyQueued }) => isOnlyQueued).map(({ jobId }) => jobId))
  const running = live.filter(isIn('running'))
  const left = running.filter((row) => isSpared.has(row[COLUMN.id]))
  const toMark = running.map((row) => row[COLUMN.id]).filter((id) => !isSpared.has(id))
  const ended = await endJobs(tx, ends)
  const marked = toMark.length === 0 ? [] : await tx.all(MARK, [toMark])
  const isOurs = (row: JobRow) =>
    isAgain && isIn('canceled')(row) && row[COLUMN.completedAt] === nowOf.get(row[COLUMN.id])
  const outcomes = new Map<string, readonly [Outcome, JobRow]>([
    ...done.map((row) => [row[COLUMN.id], [isOurs(row) ? 'canceled' : 'already_terminal', row]] as const),
    ...live.filter(isIn('canceling')).map((row) => [row[COLUMN.id], ['canceling', row]] as const),
    ...left.map((row) => [row[COLUMN.id], ['left_running', row]] as const),
    ...marked.map((row) => [row[COLUMN.id], ['canceling', row]] as const),
    ...ended.map((row) => [row[COLUMN.id], ['canceled', row]] as const),
  ])
  const outputs = await findOutputsOf(
    tx,
    [...outcomes.values()].map(([, row]) => row),
  )
  return queries.map(({ jobId }) => {
    const found = outcomes.get(jobId)
    if (found === undefined) return { outcome: 'not_found' }
    const [outcome, row] = found
    return { outcome, job: toJob([row, outputs.get(jobId) ?? null, null]) }
  })
}

const MAX_CANCELS = 64
const MAX_BATCHES = 2

export function createCancels(durable: Connected): (query: CancelQuery) => Promise<CancelOutcome> {
  const cancelTogether = (queries: readonly CancelQuery[]) => {
    let tries = 0
    return durable.transaction((tx) => cancelJobs(tx, queries, tries++ > 0), { isRepeatable: true })
  }
  const cancel = createGather<CancelQuery, () => CancelOutcome>({
    async run(queries) {
      try {
        return (await cancelTogether(queries)).map((outcome) => () => outcome)
      } catch (error) {
        if (isStoreAway(error) || queries.length === 1) throw error
      }
      const settled: PromiseSettledResult<CancelOutcome[]>[] = []
      for (const query of queries) settled.push(...(await Promise.allSettled([cancelTogether([query])])))
      return settled.map((result) => () => {
        if (result.status === 'rejected') throw result.reason
        return result.value[0] ?? { outcome: 'not_found' }
      })
    },
    onBatch: durable.noteBatch,
    maxItems: MAX_CANCELS,
    maxRunning: MAX_BATCHES,
    // A second cancel of the same job is answered by what the first one left.
    nameOf: ({ jobId }) => jobId,
  })
  return async (query) => (isUuid(query.jobId) ? (await cancel(query))() : { outcome: 'not_found' })
}
