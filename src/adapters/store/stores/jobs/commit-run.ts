/**
 * What workers write. The lease id is the fencing token: no row with it and a live status means that the lease is lost, and nothing
 * at all is written. Outputs become asset records in the same operation, so a job never shows one without bytes that are referenced.
 * Locks come in the order that all transactions keep: jobs, counters, records and storage, credit.
 */
import type { JobError, JobLog, Output, Progress } from '../../../../domain/jobs/job.ts'
import type { CommitOutcome, Lease, RunChange } from '../../../../domain/jobs/job-store.ts'
import type { GpuUse } from '../../../../domain/jobs/run/gpu-use.ts'
import type { JobStatus } from '../../../../domain/jobs/transitions.ts'
import { type JobRow, toJob } from '../../rows/jobs/job.ts'
import { all, run, type Steps } from '../../statements/operation.ts'
import { command, query, toRows } from '../../statements/statement.ts'
import { jobRow } from '../../tables/jobs.ts'
import { pick, type RowOf } from '../../tables/table.ts'
import { addRecords } from '../account-storage.ts'
import { addOutputs } from './add-outputs.ts'
import { closeEnded, type EndStatus, type JobEnd, moveToEnd } from './end-jobs.ts'
import { listOutputs } from './find-job.ts'
import { keepResults } from './kept-results.ts'

/** What is null is left as it stands. */
export interface Commit extends Lease {
  readonly now: Date
  readonly progress: Progress | null
  readonly outputs: readonly Output[]
  readonly outputsReused: boolean | null
  readonly log: JobLog | null
  readonly finish: Finish | null
}

interface Finish {
  readonly status: EndStatus
  readonly from: readonly JobStatus[]
  readonly at: Date
  readonly error: JobError | null
  /** JSON. */
  readonly record: string | null
  /** Under which its outputs answer further jobs; null: they do not. */
  readonly resultKey: string | null
  readonly gpu: GpuUse | null
}

export function toCommit({ jobId, leaseId }: Lease, change: RunChange, now: Date): Commit {
  const { progress = null, outputs = [], outputsReused = null, log = null, finish } = change
  const rest = { jobId, leaseId, now, progress, outputs, outputsReused, log }
  if (finish === undefined) return { ...rest, finish: null }
  const { status, from, at, error, record = null, resultKey = null, gpu = null } = finish
  const kept = {
    record: record === null ? null : JSON.stringify(record),
    resultKey: status === 'succeeded' ? resultKey : null,
  }
  return { ...rest, finish: { status, from, at, error, gpu, ...kept } }
}

export function isProgressOnly({ outputs, log, finish }: Commit): boolean {
  return outputs.length === 0 && log === null && finish === null
}

const LOST: CommitOutcome = { outcome: 'lost' }

const CHANGE = {
  ...({ job_id: 'uuid', held_by: 'text', new_progress: 'text', reused: 'integer', outputs: 'integer' } as const),
}

function toChange({ jobId, leaseId, progress, outputsReused }: Commit, outputs: number | null) {
  return {
    ...{ job_id: jobId, held_by: leaseId, new_progress: progress === null ? null : JSON.stringify(progress), outputs },
    reused: outputsReused === null ? null : Number(outputsReused),
  }
}

const held = pick(jobRow, 'seq', 'id', 'accountId', 'status', 'expiresAt', 'outputCount')
const LOCK_HELD = query(
  'runs.lockHeld',
  held,
  (words) => `SELECT ${held.columns} FROM ${words.rows(':commits', CHANGE)} AS change JOIN job ON job.id = job_id
    WHERE lease_id = held_by AND status IN ('running', 'canceling') ORDER BY job.id ${words.lock('NO KEY UPDATE', 'job')}`,
)
const written = pick(jobRow, 'id', 'version', 'status')
const UPDATE = query(
  'runs.update',
  written,
  (words) => `
    UPDATE job SET progress = coalesce(new_progress, progress), output_count = coalesce(outputs, output_count),
      outputs_reused = coalesce(reused, outputs_reused), version = version + 1
    FROM ${words.rows(':commits', CHANGE)} AS change WHERE job.id = job_id RETURNING ${written.columns}`,
)
/** Progress alone is one statement. */
const UPDATE_PROGRESS = query('runs.progress', written, (words) => {
  const set = `SET progress = coalesce(new_progress, progress), outputs_reused = coalesce(reused, outputs_reused), version = version + 1`
  const isHeld = `lease_id = held_by AND status IN ('running', 'canceling')`
  return words.either(
    `UPDATE job ${set} FROM ${words.rows(':commits', CHANGE)} AS change WHERE job.id = job_id AND ${isHeld} RETURNING ${written.columns}`,
    `WITH held AS MATERIALIZED (
       SELECT job.id AS held_id, new_progress, reused FROM ${words.rows(':commits', CHANGE)} AS change JOIN job ON job.id = job_id
       WHERE ${isHeld} ORDER BY job.id FOR NO KEY UPDATE OF job)
     UPDATE job ${set} FROM held WHERE id = held_id RETURNING ${written.columns}`,
  )
})

export function* writeProgress(commits: readonly Commit[]): Steps<CommitOutcome[]> {
  const rows = commits.map((commit) => toChange(commit, null))
  const now = new Map((yield* all(UPDATE_PROGRESS, toRows('commits', rows))).map((row) => [row.id, row]))
  return commits.map(({ jobId }) => toRunning(now.get(jobId)))
}

function toRunning(row: RowOf<typeof written> | undefined): CommitOutcome {
  return row === undefined ? LOST : { outcome: 'committed', version: row.version, status: row.status }
}

/** One answer for each, in their order; no two are about the same job. */
export function* writeCommits(commits: readonly Commit[]): Steps<CommitOutcome[]> {
  const rows = commits.map((commit) => toChange(commit, null))
  const holds = new Map((yield* all(LOCK_HELD, toRows('commits', rows))).map((row) => [row.id, row]))
  const standing = commits.flatMap((commit) => {
    const job = holds.get(commit.jobId)
    return job === undefined || (commit.finish !== null && !commit.finish.from.includes(job.status))
      ? []
      : [{ commit, job }]
  })
  const outcomes = yield* writeStanding(standing)
  for (const commit of commits) {
    if (commit.finish === null || holds.has(commit.jobId)) continue
    const ended = yield* findEnded(commit, commit.finish.status)
    if (ended !== null) outcomes.set(commit.jobId, ended)
  }
  return commits.map(({ jobId }) => outcomes.get(jobId) ?? LOST)
}

/** A commit whose lease stands. */
interface Standing {
  readonly commit: Commit
  readonly job: RowOf<typeof held>
}

function* writeStanding(standing: readonly Standing[]): Steps<Map<string, CommitOutcome>> {
  const { counts, records } = yield* addOutputs(
    standing.map(({ commit: { outputs, now }, job }) => ({ ...job, outputs, now })),
  )
  yield* writeLogs(standing)
  const outcomes = yield* updateRunning(standing, counts)
  const ended = yield* moveToEnd(standing.flatMap(({ commit, job }) => toEnd(commit, job.status, counts)))
  yield* addRecords(records)
  yield* closeEnded(ended)
  yield* keepResults(
    standing.flatMap((each) =>
      toKept(
        each,
        ended.map(({ row }) => row),
      ),
    ),
  )
  for (const { row } of ended) outcomes.set(row.id, yield* toEndOutcome(row))
  return outcomes
}

function toEnd(commit: Commit, from: JobStatus, counts: ReadonlyMap<string, number>): JobEnd[] {
  const { jobId: id, finish, progress, outputsReused } = commit
  if (finish === null) return []
  const { status: to, at, error, record: run, gpu } = finish
  return [
    {
      ...{ id, from, to, at, error, run, progress, outputsReused, gpu, keepsLease: true },
      outputCount: counts.get(id) ?? null,
    },
  ]
}

function toKept({ commit: { jobId, finish }, job: { accountId, expiresAt } }: Standing, rows: readonly JobRow[]) {
  if (finish === null || finish.resultKey === null) return []
  const startedAt = rows.find(({ id }) => id === jobId)?.startedAt ?? finish.at
  return [{ accountId, key: finish.resultKey, jobId, runMs: finish.at.getTime() - startedAt.getTime(), expiresAt }]
}

function* toEndOutcome(row: JobRow): Steps<CommitOutcome> {
  const { version, status } = row
  return { outcome: 'committed', version, status, job: toJob(row, yield* listOutputs(row), null) }
}

function* updateRunning(
  standing: readonly Standing[],
  counts: ReadonlyMap<string, number>,
): Steps<Map<string, CommitOutcome>> {
  const running = standing.filter(({ commit }) => commit.finish === null)
  if (running.length === 0) return new Map()
  const rows = running.map(({ commit }) => toChange(commit, counts.get(commit.jobId) ?? null))
  return new Map((yield* all(UPDATE, toRows('commits', rows))).map((row) => [row.id, toRunning(row)]))
}

const LOG = {
  ...({
    seq: 'bigint',
    job_id: 'uuid',
    expires_at: 'bigint',
    text: 'text',
    truncated: 'integer',
    captured_at: 'bigint',
  } as const),
  ...({ complete: 'integer', marks: 'text' } as const),
}
const PUT_LOGS = command('runs.putLogs', (words) =>
  words.either(
    `INSERT OR REPLACE INTO job_log (seq, text, truncated, captured_at, complete, marks)
     SELECT seq, text, truncated, captured_at, complete, marks FROM ${words.rows(':logs', LOG)}`,
    `INSERT INTO job_log (job_id, expires_at, text, truncated, captured_at, complete, marks)
     SELECT job_id, expires_at, text, truncated = 1, captured_at, complete = 1, marks FROM ${words.rows(':logs', LOG)} AS log
     ON CONFLICT (job_id, expires_at) DO UPDATE SET text = excluded.text, truncated = excluded.truncated,
       captured_at = excluded.captured_at, complete = excluded.complete, marks = excluded.marks`,
  ),
)

function* writeLogs(standing: readonly Standing[]): Steps<void> {
  const logs = standing.flatMap(({ commit: { jobId, log }, job: { seq, expiresAt } }) => {
    if (log === null) return []
    const { text, truncated, capturedAt, complete, marks = null } = log
    const printed = { text, truncated: Number(truncated), captured_at: capturedAt, complete: Number(complete), marks }
    return [{ seq, job_id: jobId, expires_at: expiresAt, ...printed }]
  })
  if (logs.length > 0) yield* run(PUT_LOGS, toRows('logs', logs))
}

const FIND_ENDED = query(
  'runs.findEnded',
  jobRow,
  ({ either }) => `SELECT ${jobRow.columns} FROM ${either('job', 'job_done')}
    WHERE id = :jobId AND lease_id = :leaseId AND status = :endedAs`,
)

/** The same end was written before, and only its answer was lost. A lease makes one end, whenever it is said to have been. */
function* findEnded({ jobId, leaseId }: Commit, endedAs: EndStatus): Steps<CommitOutcome | null> {
  const [row] = yield* all(FIND_ENDED, { jobId, leaseId, endedAs })
  return row === undefined ? null : yield* toEndOutcome(row)
}
