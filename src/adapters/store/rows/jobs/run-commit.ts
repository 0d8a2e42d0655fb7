/** What a worker writes of a run, as both stores take it. */
import type { JobLog, Output } from '../../../../domain/jobs/job.ts'
import type { Lease, RunChange } from '../../../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../../../domain/jobs/transitions.ts'

export type EndStatus = Extract<JobStatus, 'succeeded' | 'failed' | 'canceled' | 'expired'>

export interface Finish {
  readonly status: EndStatus
  readonly from: readonly JobStatus[]
  readonly at: number
  readonly error: string | null
  readonly record: string | null
  /** Under which its outputs answer further jobs; null: they do not. */
  readonly resultKey: string | null
}

function toFinish(finish: NonNullable<RunChange['finish']>): Finish {
  const { status, from, at, error, record = null, resultKey = null } = finish
  return {
    status,
    from,
    at: at.getTime(),
    error: error === null ? null : JSON.stringify(error),
    record: record === null ? null : JSON.stringify(record),
    resultKey: status === 'succeeded' ? resultKey : null,
  }
}

/** What is null is left as it stands. Times are in milliseconds. */
export interface RunCommit<OutputRow, LogRow> {
  readonly jobId: string
  readonly leaseId: string
  readonly now: number
  /** JSON. */
  readonly progress: string | null
  readonly outputs: readonly OutputRow[]
  readonly outputsReused: number | null
  readonly log: LogRow | null
  readonly finish: Finish | null
}

/** Rows in the types that a store has. */
interface CommitRows<OutputRow, LogRow> {
  readonly toOutputRow: (output: Output) => OutputRow
  readonly toLogRow: (log: JobLog) => LogRow
}

/** Makes the conversion of one store. */
export function createToCommit<OutputRow, LogRow>({ toOutputRow, toLogRow }: CommitRows<OutputRow, LogRow>) {
  return ({ jobId, leaseId }: Lease, change: RunChange, now: Date): RunCommit<OutputRow, LogRow> => {
    const { progress, outputs = [], outputsReused, log, finish } = change
    return {
      jobId,
      leaseId,
      now: now.getTime(),
      progress: progress === undefined ? null : JSON.stringify(progress),
      outputs: outputs.map(toOutputRow),
      outputsReused: outputsReused === undefined ? null : Number(outputsReused),
      log: log === undefined ? null : toLogRow(log),
      finish: finish === undefined ? null : toFinish(finish),
    }
  }
}
