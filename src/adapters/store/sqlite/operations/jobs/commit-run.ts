/**
 * What a worker writes. The lease id is the fencing token: no row with it and a live status means that the lease is lost,
 * and nothing at all is written. Outputs become asset records in the same operation, so a job never shows one without bytes
 * that are referenced.
 */

import type { DatabaseSync } from 'node:sqlite'
import type { CommitOutcome } from '../../../../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../../../../domain/jobs/transitions.ts'
import { COLUMN, type JobRow, type StoredJob, toJob } from '../../../rows/jobs/job-row.ts'
import { createToCommit, type Finish, type RunCommit } from '../../../rows/jobs/run-commit.ts'
import { prepareRows } from '../statement.ts'
import { type EndJob, prepareEndJob } from './end-job.ts'
import { type NewOutputRow, prepareAddOutputs, toNewOutputRow } from './job-outputs.ts'
import { type CompleteJob, JOB_COLUMNS } from './job-row.ts'
import { prepareKeepResult } from './reuse-result.ts'
import { prepareAddRun } from './write-run-records.ts'

type LogFields = readonly [text: string, truncated: number, capturedAt: number, complete: number, marks: string | null]

type CommitInput = RunCommit<NewOutputRow, LogFields>

export const toCommitInput = createToCommit<NewOutputRow, LogFields>({
  toOutputRow: toNewOutputRow,
  toLogRow: ({ text, truncated, capturedAt, complete, marks = null }) => [
    text,
    Number(truncated),
    capturedAt.getTime(),
    Number(complete),
    marks,
  ],
})

/** `ended`: the job, where this was its last write. */
type CommitAnswer =
  | { readonly version: number; readonly status: JobStatus; readonly ended: StoredJob | null }
  /** The lease is lost. */
  | null

export function toCommitOutcome(answer: CommitAnswer): CommitOutcome {
  if (answer === null) return { outcome: 'lost' }
  const { version, status, ended } = answer
  return { outcome: 'committed', version, status, ...(ended !== null && { job: toJob(ended) }) }
}

type HeldRow = [seq: number, accountId: string, status: JobStatus, expiresAt: number, outputCount: number]

export function prepareCommit(
  database: DatabaseSync,
  { completeJob }: { readonly completeJob: CompleteJob },
): (input: CommitInput) => CommitAnswer {
  const selectHeld = prepareRows<HeldRow>(
    database,
    `SELECT seq, account_id, status, expires_at, output_count FROM job
     WHERE id = ? AND lease_id = ? AND status IN ('running', 'canceling')`,
  )
  const selectEnded = prepareRows<JobRow>(
    database,
    `SELECT ${JOB_COLUMNS} FROM job WHERE id = ? AND lease_id = ? AND status = ?`,
  )
  const update = prepareRows<[version: number]>(
    database,
    `UPDATE job SET progress = coalesce(?2, progress), outputs_reused = coalesce(?3, outputs_reused),
       output_count = ?4, version = version + ?5 WHERE seq = ?1 RETURNING version`,
  )
  const upsertLog = database.prepare(`
    INSERT OR REPLACE INTO job_log (seq, text, truncated, captured_at, complete, marks) VALUES (?, ?, ?, ?, ?, ?)`)
  const addOutputs = prepareAddOutputs(database)
  const addRun = prepareAddRun(database)
  const endJob: EndJob = prepareEndJob(database)
  const keepResult = prepareKeepResult(database)

  /** The same end was written before, and only its answer was lost. */
  function findEnded({ jobId, leaseId }: CommitInput, { status }: Finish): CommitAnswer {
    const row = selectEnded.get(jobId, leaseId, status)
    return row === undefined ? null : { version: row[COLUMN.version], status, ended: completeJob(row) }
  }

  return (input) => {
    const { progress, outputsReused, log, finish } = input
    const held = selectHeld.get(input.jobId, input.leaseId)
    if (held === undefined) return finish === null ? null : findEnded(input, finish)
    const [seq, accountId, status, expiresAt, outputsBefore] = held
    if (finish !== null && !finish.from.includes(status)) return null
    const owner = { seq, jobId: input.jobId, accountId, expiresAt, outputCount: outputsBefore }
    const outputCount = addOutputs(owner, input.outputs, input.now)
    if (log !== null) upsertLog.run(seq, ...log)
    // A finish raises the version itself.
    const version = update.get(seq, progress, outputsReused, outputCount, finish === null ? 1 : 0)?.[0] ?? 0
    if (finish === null) return { version, status, ended: null }
    const { status: to, at, error, record, resultKey: key } = finish
    if (record !== null) addRun(seq, record)
    const row = endJob({ seq, accountId, from: status, to, at, error, keepsLease: true })
    const runMs = at - (row[COLUMN.startedAt] ?? at)
    if (key !== null) keepResult({ accountId, key, jobId: input.jobId, runMs, expiresAt })
    return { version: row[COLUMN.version], status: to, ended: completeJob(row) }
  }
}
