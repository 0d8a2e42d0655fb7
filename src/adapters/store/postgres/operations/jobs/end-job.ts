/**
 * The end of jobs, whatever causes it: the rows, their accounts' counters, their credit holds, their references to input blobs
 * and what was kept of their `extra_data` change together. The caller has locked the jobs, by their ids in order, and has checked
 * that each move is allowed.
 */

import { jobHoldId } from '../../../../../domain/credits/ledger.ts'
import { chargeOf } from '../../../../../domain/jobs/end/charge.ts'
import type { JobError } from '../../../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN, type JobRow } from '../../../rows/jobs/job-row.ts'
import { OUTPUT_TYPES } from '../../../rows/jobs/output-types.ts'
import type { EndStatus } from '../../../rows/jobs/run-commit.ts'
import { type CloseInput, closeMany } from '../../../stores/ledger/holds.ts'
import { type Queryable, statement } from '../../database/statement.ts'
import { runOn } from '../../shared-stores.ts'

export interface JobEnd {
  readonly id: string
  readonly to: EndStatus
  readonly at: number
  /** JSON. */
  readonly error: string | null
  /** The service lost the run: it is not charged, whatever the job's final state. */
  readonly isLost?: boolean
  /** JSON: what the run showed; null when it never began. */
  readonly run?: string | null
  /** JSON: the last progress, where this write brings it. */
  readonly progress?: string | null
  readonly outputsReused?: number | null
  /** How many outputs the job lists, where this write brings some. */
  readonly outputCount?: number | null
}

type Terms = readonly [
  from: JobStatus,
  inputCount: number,
  perSecondMicros: number | null,
  minimumMicros: number | null,
]

const TERM_COUNT = 4

/** A job that has left the queue's table, and what is still to be closed for it. */
interface EndedJob {
  readonly row: JobRow
  readonly terms: Terms
  readonly isLost: boolean
}

// Counters are locked by account id, like wherever several are written.
const MOVE = statement<[...JobRow, ...Terms]>(
  'jobs.end',
  `WITH ending AS MATERIALIZED (
     SELECT * FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[],
         $9::text[])
       AS e(id, ended_as, ended_at, failure, shown, last_progress, reused, outputs, code)),
   gone AS (
     DELETE FROM job USING ending WHERE job.id = ending.id RETURNING job.*, ending.ended_as, ending.ended_at,
       ending.failure, ending.shown, ending.code, coalesce(ending.last_progress, job.progress) AS final_progress,
       coalesce(ending.reused, job.outputs_reused) AS final_reused, coalesce(ending.outputs, job.output_count) AS final_count),
   done AS (
     INSERT INTO job_done (id, seq, account_id, pool, status, priority, attempt, version, created_at, started_at, completed_at,
       expires_at, lease_id, engine_id, output_count, outputs_reused, outputs_replaced, metadata, progress, error, run,
       recipe, attempts, code, title, output_types)
     SELECT id, seq, account_id, pool, ended_as, priority, attempt, version + 1, created_at, started_at, ended_at,
       expires_at, lease_id, engine_id, final_count, final_reused, outputs_replaced, metadata, final_progress, failure, shown,
       recipe, attempts, code, title, CASE WHEN final_count > 0 THEN (
         SELECT ${OUTPUT_TYPES} FROM output WHERE output.job_id = gone.id AND output.expires_at = gone.expires_at
           AND output.position IS NOT NULL) ELSE 0 END
     FROM gone),
   secret AS (DELETE FROM job_secret USING gone WHERE job_id = gone.id AND gone.needs_extra_data & 1 <> 0),
   notes AS (DELETE FROM job_notes USING gone WHERE job_id = gone.id AND gone.needs_extra_data & 2 <> 0),
   change AS MATERIALIZED (
     SELECT account_id, count(*) FILTER (WHERE status = 'queued') AS waited, count(*) FILTER (WHERE status <> 'queued') AS ran,
       count(*) FILTER (WHERE ended_as = 'succeeded') AS succeeded, count(*) FILTER (WHERE ended_as = 'canceled') AS canceled,
       count(*) FILTER (WHERE ended_as = 'failed') AS failed, count(*) FILTER (WHERE ended_as = 'expired') AS expired
     FROM gone GROUP BY account_id),
   locked AS MATERIALIZED (
     SELECT load.account_id FROM account_load AS load JOIN change USING (account_id)
     ORDER BY load.account_id FOR NO KEY UPDATE OF load),
   counted AS (
     UPDATE account_load AS load SET running = load.running - change.ran, started = load.started + change.waited,
       succeeded = load.succeeded + change.succeeded, canceled = load.canceled + change.canceled,
       failed = load.failed + change.failed, expired = load.expired + change.expired
     FROM locked JOIN change USING (account_id) WHERE load.account_id = locked.account_id)
   SELECT seq, id, account_id, pool, ended_as, priority, created_at, started_at, ended_at, expires_at, attempt, version + 1,
     final_count, final_reused, outputs_replaced, metadata, final_progress, failure, NULL::uuid,
     status, input_count, price_second, price_minimum
   FROM gone`,
)

const DROP_INPUTS = statement(
  'jobs.drop_inputs',
  `WITH dropped AS (DELETE FROM job_input WHERE job_id = ANY($1::uuid[]) RETURNING hash, size_bytes)
   INSERT INTO blob_candidate (hash, size_bytes, since)
   SELECT hash, max(size_bytes), $2 FROM dropped GROUP BY hash ORDER BY hash
   ON CONFLICT (hash) DO UPDATE SET since = greatest(blob_candidate.since, excluded.since)`,
)

/** Ends the jobs and returns their rows as they now are, in the order asked for; one that is not there is left out. */
export async function endJobs(tx: Queryable, ends: readonly JobEnd[]): Promise<JobRow[]> {
  const ended = await moveToDone(tx, ends)
  await closeEnded(tx, ended)
  return ended.map(({ row }) => row)
}

/** The first half: rows and counters. Records of assets, if any, are written between the two halves (the order of locks). */
export async function moveToDone(tx: Queryable, ends: readonly JobEnd[]): Promise<EndedJob[]> {
  if (ends.length === 0) return []
  const moved = await tx.all(MOVE, [
    ends.map(({ id }) => id),
    ends.map(({ to }) => to),
    ends.map(({ at }) => at),
    ends.map(({ error }) => error),
    ends.map(({ run }) => run ?? null),
    ends.map(({ progress }) => progress ?? null),
    ends.map(({ outputsReused }) => outputsReused ?? null),
    ends.map(({ outputCount }) => outputCount ?? null),
    ends.map(({ error }) => codeOf(error)),
  ])
  const byId = new Map(moved.map((row) => [row[COLUMN.id] as string, row]))
  return ends.flatMap(({ id, isLost = false }) => {
    const row = byId.get(id)
    if (row === undefined) return []
    return {
      row: row.slice(0, -TERM_COUNT) as unknown as JobRow,
      terms: row.slice(-TERM_COUNT) as unknown as Terms,
      isLost,
    }
  })
}

function codeOf(error: string | null): string | null {
  return error === null ? null : (JSON.parse(error) as JobError).code
}

/** The second half: references to blobs, and the holds. */
export async function closeEnded(tx: Queryable, ended: readonly EndedJob[]): Promise<void> {
  const withInputs = ended.filter(({ terms: [, inputCount] }) => inputCount > 0).map(({ row }) => row)
  const endedAt = Math.max(...withInputs.map((row) => row[COLUMN.completedAt] ?? 0))
  await Promise.all([
    withInputs.length > 0 && tx.run(DROP_INPUTS, [withInputs.map((row) => row[COLUMN.id]), endedAt]),
    runOn(tx, closeMany(ended.map(toClose).filter((close) => close !== null))),
  ])
}

/** Charges for the run, or gives the hold back. A job is charged once: its hold is closed by whatever ends it first. */
function toClose({ row, terms, isLost }: EndedJob): CloseInput | null {
  const [from, , perSecondMicros, minimumMicros] = terms
  if (perSecondMicros === null || minimumMicros === null) return null
  const [id, startedAt, to] = [row[COLUMN.id], row[COLUMN.startedAt], row[COLUMN.status]]
  const [attempt, error, at] = [row[COLUMN.attempt], row[COLUMN.error], row[COLUMN.completedAt] ?? 0]
  const errorCode = codeOf(error)
  const run = { from, to, errorCode, startedAt, endedAt: at }
  const micros = isLost ? 0 : chargeOf({ perSecondMicros, minimumMicros }, run)
  const holdId = jobHoldId(id)
  if (micros === 0) return { kind: 'release', holdId, micros, at, memo: errorCode ?? to }
  return { kind: 'settle', holdId, micros, at, memo: `${to}, attempt ${attempt}, ${at - (startedAt ?? at)} ms` }
}
