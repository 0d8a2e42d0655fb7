/**
 * The end of jobs, whatever causes it: the rows, their accounts' counters, their credit holds, their references to input blobs
 * and what was kept of their `extra_data` change together. The caller has locked the jobs, by their ids in order. Only moves that
 * transitions.ts allows are made.
 */
import { jobHoldId } from '../../../../domain/credits/ledger.ts'
import { toChargeMemo } from '../../../../domain/credits/usage-events.ts'
import { chargeOf } from '../../../../domain/jobs/end/charge.ts'
import type { JobError, Progress } from '../../../../domain/jobs/job.ts'
import type { GpuUse } from '../../../../domain/jobs/run/gpu-use.ts'
import { type JobStatus, mustMove } from '../../../../domain/jobs/transitions.ts'
import { HAS_CREDENTIALS, HAS_NOTES, type JobRow } from '../../rows/jobs/job.ts'
import { OUTPUT_TYPES } from '../../rows/jobs/output-types.ts'
import { all, run, type Steps, together } from '../../statements/operation.ts'
import { both, command, query, sqliteOnly, toRows } from '../../statements/statement.ts'
import { jobRow } from '../../tables/jobs.ts'
import { integer, nullable, type RowOf, shape, text } from '../../tables/table.ts'
import { type CloseInput, closeMany } from '../ledger/holds.ts'
import { chargeWhatRan } from './fair-share.ts'
import { noteGpuUse } from './gpu-use.ts'

export type EndStatus = Extract<JobStatus, 'succeeded' | 'failed' | 'canceled' | 'expired'>

export interface JobEnd {
  readonly id: string
  readonly from: JobStatus
  readonly to: EndStatus
  readonly at: Date
  readonly error: JobError | null
  /** The service lost the run: it is not charged, whatever the job's final state. */
  readonly isLost?: boolean
  /** It is the worker's own end: asked again under the same lease, the store knows it. */
  readonly keepsLease?: boolean
  /** JSON: what the run showed; null when it never began. */
  readonly run?: string | null
  /** The last progress, where this write brings it. */
  readonly progress?: Progress | null
  readonly outputsReused?: boolean | null
  /** How many outputs the job lists, where this write brings some. */
  readonly outputCount?: number | null
  /** The job whose result this one was answered with. */
  readonly reusedFrom?: string | null
  /** What the attempt took of a server; null or left out: none computed anything of it. */
  readonly gpu?: GpuUse | null
}

const terms = shape({
  ...jobRow.fields,
  engineId: nullable(text()),
  inputCount: integer('integer'),
  needsExtraData: integer('smallint'),
  priceSecond: nullable(integer()),
  priceMinimum: nullable(integer()),
  foreseenMs: nullable(integer()),
})

/** A job that has ended, and what is still to be closed for it. */
interface EndedJob {
  readonly row: RowOf<typeof terms>
  readonly end: JobEnd
}

const ENDING = {
  ...({
    id: 'text',
    ended_as: 'text',
    ended_at: 'bigint',
    failure: 'text',
    code: 'text',
    shown: 'text',
    last_progress: 'text',
  } as const),
  ...({ reused: 'integer', outputs: 'integer', source: 'text', keeps_lease: 'integer' } as const),
}

/** In Postgres also: its text of `extra_data`, and the counters of accounts, which are locked by account id as wherever several are. */
const MOVE = query('jobs.end', terms, (words) =>
  words.either(
    `UPDATE job SET status = ended_as, completed_at = ended_at, error = failure, code = ending.code, version = version + 1,
       lease_id = iif(keeps_lease, lease_id, NULL), lease_until = NULL, progress = coalesce(last_progress, progress),
       outputs_reused = coalesce(reused, outputs_reused), reused_from = source, output_types = iif(output_count = 0, 0, (
         SELECT ${OUTPUT_TYPES} FROM job_output WHERE job_output.seq = job.seq))
     FROM ${words.rows(':ends', ENDING)} AS ending WHERE job.id = ending.id
     RETURNING ${terms.columns}`,
    `WITH ending AS MATERIALIZED (SELECT * FROM ${words.rows(':ends', ENDING)} AS given),
     gone AS (
       DELETE FROM job USING ending WHERE job.id = ending.id::uuid RETURNING job.*, ended_as, ended_at, failure, shown, code, source::uuid,
         keeps_lease, coalesce(last_progress, job.progress) AS final_progress, coalesce(reused, job.outputs_reused) AS final_reused,
         coalesce(outputs, job.output_count) AS final_count),
     done AS (
       INSERT INTO job_done (id, seq, account_id, pool, status, priority, attempt, version, created_at, started_at, completed_at,
         expires_at, lease_id, engine_id, output_count, outputs_reused, outputs_replaced, metadata, progress, error, run,
         recipe, attempts, code, title, reused_from, not_before, queue_until, output_types)
       SELECT id, seq, account_id, pool, ended_as, priority, attempt, version + 1, created_at, started_at, ended_at,
         expires_at, CASE WHEN keeps_lease = 1 THEN lease_id END, engine_id, final_count, final_reused, outputs_replaced, metadata, final_progress, failure, shown,
         recipe, attempts, code, title, source, not_before, queue_until, CASE WHEN final_count > 0 THEN (
           SELECT ${OUTPUT_TYPES} FROM output WHERE output.job_id = gone.id AND output.expires_at = gone.expires_at
             AND output.position IS NOT NULL) ELSE 0 END
       FROM gone),
     secret AS (DELETE FROM job_secret USING gone WHERE job_id = gone.id AND gone.needs_extra_data & ${HAS_CREDENTIALS} <> 0),
     notes AS (DELETE FROM job_notes USING gone WHERE job_id = gone.id AND gone.needs_extra_data & ${HAS_NOTES} <> 0),
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
     SELECT seq, id, account_id, pool, ended_as AS status, priority, created_at, started_at, ended_at AS completed_at, expires_at,
       attempt, version + 1 AS version, final_count AS output_count, final_reused AS outputs_reused, outputs_replaced, metadata,
       final_progress AS progress, failure AS error, source AS reused_from, not_before, queue_until, input_count, needs_extra_data,
       price_second, price_minimum, foreseen_ms, engine_id
     FROM gone`,
  ),
)

// On SQLite triggers tell webhooks of new outputs and of the end, and the order of the triggers of one statement is not defined.
const COUNT_OUTPUTS = command(
  'jobs.countOutputs',
  sqliteOnly('UPDATE job SET output_count = :outputCount WHERE id = :id AND output_count <> :outputCount'),
)

const COUNTED = { account_id: 'text', was_queued: 'integer', ended_as: 'text' } as const
const COUNT = command('jobs.countEnded', (words) =>
  words.dialect === 'postgres'
    ? null
    : `UPDATE account SET queued = queued - waited, running = running - (jobs - waited),
         succeeded = account.succeeded + change.succeeded, canceled = account.canceled + change.canceled,
         failed = account.failed + change.failed, expired = account.expired + change.expired
       FROM (
         SELECT account_id, count(*) AS jobs, sum(was_queued) AS waited, sum(ended_as = 'succeeded') AS succeeded,
           sum(ended_as = 'canceled') AS canceled, sum(ended_as = 'failed') AS failed, sum(ended_as = 'expired') AS expired
         FROM ${words.rows(':ended', COUNTED)} GROUP BY account_id) AS change
       WHERE account.id = change.account_id`,
)
const OF_ENDED = 'WHERE seq IN (SELECT value FROM json_each(:seqs))'
const DROP_SECRETS = command('jobs.dropSecrets', sqliteOnly(`DELETE FROM job_secret ${OF_ENDED}`))
const DROP_NOTES = command('jobs.dropNotes', sqliteOnly(`DELETE FROM job_notes ${OF_ENDED}`))
const KEEP_RUN = command('jobs.keepRun', sqliteOnly('INSERT OR REPLACE INTO job_run (seq, text) VALUES (:seq, :run)'))

const OFFER_INPUTS = command(
  'jobs.offerInputs',
  both({
    sqlite: `
      INSERT INTO blob_candidate (hash, size_bytes, since) SELECT hash, max(size_bytes), :at FROM job_input ${OF_ENDED} GROUP BY hash
      ON CONFLICT (hash) DO UPDATE SET since = max(since, excluded.since)`,
    postgres: `
      WITH dropped AS (DELETE FROM job_input WHERE job_id = ANY(:ids::uuid[]) RETURNING hash, size_bytes)
      INSERT INTO blob_candidate (hash, size_bytes, since)
      SELECT hash, max(size_bytes), :at::bigint FROM dropped GROUP BY hash ORDER BY hash
      ON CONFLICT (hash) DO UPDATE SET since = greatest(blob_candidate.since, excluded.since)`,
  }),
)
const DROP_INPUTS = command('jobs.dropInputs', sqliteOnly(`DELETE FROM job_input ${OF_ENDED}`))

/** Ends the jobs and returns their rows as they now are, in the order asked for; one that is not there is left out. */
export function* endJobs(ends: readonly JobEnd[]): Steps<JobRow[]> {
  const ended = yield* moveToEnd(ends)
  yield* closeEnded(ended)
  return ended.map(({ row }) => row)
}

/** The first half: rows and counters. Records of assets, if any, are written between the two halves (the order of locks). */
export function* moveToEnd(ends: readonly JobEnd[]): Steps<EndedJob[]> {
  if (ends.length === 0) return []
  for (const { from, to } of ends) mustMove(from, to)
  for (const { id, outputCount } of ends) if (outputCount != null) yield* run(COUNT_OUTPUTS, { id, outputCount })
  const moved = yield* all(MOVE, toRows('ends', ends.map(toEnding)))
  const byId = new Map(moved.map((row) => [row.id, row]))
  const ended = ends.flatMap((end) => {
    const row = byId.get(end.id)
    return row === undefined ? [] : [{ row, end }]
  })
  if (ended.length === 0) return []
  const seqsWith = (flag: number) =>
    ended.filter(({ row }) => (row.needsExtraData & flag) !== 0).map(({ row }) => row.seq)
  const [secrets, notes] = [seqsWith(HAS_CREDENTIALS), seqsWith(HAS_NOTES)]
  yield* together(
    run(
      COUNT,
      toRows(
        'ended',
        ended.map(({ row, end }) => ({
          ...{ account_id: row.accountId, was_queued: Number(end.from === 'queued'), ended_as: end.to },
        })),
      ),
    ),
    ...(secrets.length > 0 ? [run(DROP_SECRETS, { seqs: secrets })] : []),
    ...(notes.length > 0 ? [run(DROP_NOTES, { seqs: notes })] : []),
    ...ended.flatMap(({ row: { seq }, end }) => (end.run == null ? [] : [run(KEEP_RUN, { seq, run: end.run })])),
  )
  const ran = ended.filter(({ end }) => end.from !== 'queued')
  yield* chargeWhatRan(ran.map(({ row, end }) => ({ ...row, endedAt: end.at })))
  yield* noteGpuUse(ran.map(({ row, end }) => ({ ...row, endedAt: end.at, gpu: end.gpu ?? null })))
  return ended
}

function toEnding(end: JobEnd) {
  const { id, to, at, error, progress, outputsReused, keepsLease = false } = end
  return {
    ...{ id, ended_as: to, ended_at: at, failure: toText(error), code: error?.code ?? null, shown: end.run ?? null },
    ...{ last_progress: toText(progress ?? null), reused: outputsReused == null ? null : Number(outputsReused) },
    ...{ outputs: end.outputCount ?? null, source: end.reusedFrom ?? null, keeps_lease: Number(keepsLease) },
  }
}

function toText(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value)
}

/** The second half: references to blobs, and the holds. */
export function* closeEnded(ended: readonly EndedJob[]): Steps<void> {
  const withInputs = ended.filter(({ row }) => row.inputCount > 0)
  if (withInputs.length > 0) {
    const [ids, seqs] = [withInputs.map(({ row }) => row.id), withInputs.map(({ row }) => row.seq)]
    const at = new Date(Math.max(...withInputs.map(({ end }) => end.at.getTime())))
    yield* together(run(OFFER_INPUTS, { ids, seqs, at }), run(DROP_INPUTS, { seqs }))
  }
  yield* closeMany(ended.map(toClose).filter((close) => close !== null))
}

/** Charges for the run, or gives the hold back. A job is charged once: its hold is closed by whatever ends it first. */
function toClose({ row, end }: EndedJob): CloseInput | null {
  const { id, attempt, priceSecond: perSecondMicros, priceMinimum: minimumMicros } = row
  if (perSecondMicros === null || minimumMicros === null) return null
  const { from, to, error, isLost = false } = end
  const [at, startedAt] = [end.at.getTime(), row.startedAt?.getTime() ?? null]
  const run = { from, to, errorCode: error?.code ?? null, startedAt, endedAt: at }
  const micros = isLost ? 0 : chargeOf({ perSecondMicros, minimumMicros }, run)
  const hold = { holdId: jobHoldId(id), micros, at, isFailed: to === 'failed' }
  if (micros === 0) return { kind: 'release', ...hold, memo: error?.code ?? to }
  return { kind: 'settle', ...hold, memo: toChargeMemo({ status: to, attempt, runMs: at - (startedAt ?? at) }) }
}
