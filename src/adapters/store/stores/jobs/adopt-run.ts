/**
 * Runs that outlive the process that followed them: their leases end without giving their jobs back, and whoever reaches their engines
 * takes them on, under a new lease. Held jobs are few, so they are walked.
 */
import type { Output } from '../../../../domain/jobs/job.ts'
import type { AdoptRequest, HeldRun, HeldRunsQuery, JobStore, Lease } from '../../../../domain/jobs/job-store.ts'
import { all, get, run, type Steps } from '../../statements/operation.ts'
import { command, query, toRows } from '../../statements/statement.ts'
import { jobRow } from '../../tables/jobs.ts'
import { integer, moment, nullable, pick, shape, text, uuid } from '../../tables/table.ts'
import { readOutputs } from './find-job.ts'

const IS_HELD = `status IN ('running', 'canceling')`

/** Each adoption counts for a minute, and a run is adopted while fewer than twenty count: it may be what ends its processes. */
const COUNTS_MS = 60_000
const MAX_COUNTED = 20
export const MAX_ADOPTIONS_MS = COUNTS_MS * MAX_COUNTED

const heldRun = shape({
  id: uuid(),
  attempt: integer('integer'),
  leaseId: text(),
  runId: nullable(text()),
  engineId: nullable(text()),
  leaseUntil: moment(),
})
const FIND_RUNS = query(
  'runs.find',
  heldRun,
  `SELECT ${heldRun.columns} FROM job WHERE ${IS_HELD} AND lease_until < :lapsedBefore`,
)

// The latest moment that a Date can hold: every lease ends before it.
const END_OF_TIME = new Date(8_640_000_000_000_000)

export function* findRuns({ lapsedBefore = END_OF_TIME }: HeldRunsQuery): Steps<HeldRun[]> {
  const rows = yield* all(FIND_RUNS, { lapsedBefore })
  return rows.map(({ id, runId, engineId, ...row }) => ({
    ...row,
    ...{ jobId: id, runId: runId ?? row.leaseId, engineId: engineId ?? '' },
  }))
}

const LEASES = { job_id: 'uuid', held_by: 'text' } as const
const LEAVE = command(
  'runs.leave',
  (words) =>
    `UPDATE job SET lease_until = :until FROM ${words.rows(':leases', LEASES)} AS lease
     WHERE job.id = job_id AND lease_id = held_by AND ${IS_HELD} AND lease_until > :until`,
)

/** Whoever held them may still bring them, until somebody else has taken them on. */
export function* leaveRuns(leases: readonly Lease[], now: Date): Steps<number> {
  if (leases.length === 0) return 0
  const named = leases.map(({ jobId, leaseId }) => ({ job_id: jobId, held_by: leaseId }))
  return yield* run(LEAVE, { ...toRows('leases', named), until: new Date(now.getTime() - 1) })
}

const adopted = pick(jobRow, 'seq', 'id', 'expiresAt', 'outputCount')
const ADOPT = query(
  'runs.adopt',
  adopted,
  (words) => `
    UPDATE job SET run_id = coalesce(run_id, lease_id), lease_id = :leaseId, lease_until = :leaseUntil, worker_id = :workerId,
      adoptions_over_at = ${words.greatest('coalesce(adoptions_over_at, 0)', words.either(':now', ':now::bigint'))} + ${COUNTS_MS}
    WHERE id = (
      SELECT id FROM job WHERE ${IS_HELD} AND lease_until < ${words.either(
        ':now',
        'least(:now::bigint, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)',
      )} AND pool = :pool AND ${words.isIn('engine_id', ':engineIds')}
        AND coalesce(adoptions_over_at, 0) < ${words.either(':now', ':now::bigint')} + ${MAX_ADOPTIONS_MS}
      ORDER BY lease_until LIMIT 1 ${words.dialect === 'postgres' ? 'FOR UPDATE SKIP LOCKED' : ''})
    RETURNING ${adopted.columns}`,
)

/** What it lists so far, when one was taken; null: there is none. */
export function* adoptRun(request: AdoptRequest): Steps<readonly Output[] | null> {
  const { leaseId, leaseUntil, workerId, now, pool, engineIds } = request
  if (engineIds.length === 0) return null
  const row = yield* get(ADOPT, { leaseId, leaseUntil, workerId, now, pool, engineIds })
  if (row === undefined) return null
  return row.outputCount > 0 ? yield* readOutputs(row) : []
}

/** `adopt` of the port. */
export function createAdopt(
  adopt: (request: AdoptRequest) => Promise<readonly Output[] | null>,
  findClaim: JobStore['findClaim'],
): JobStore['adopt'] {
  return async (request) => {
    const earlierOutputs = await adopt(request)
    const claim = earlierOutputs === null ? null : await findClaim(request.leaseId)
    return claim && { ...claim, earlierOutputs: earlierOutputs ?? [] }
  }
}
