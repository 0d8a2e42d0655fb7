/** The end of a run as both stores write it. */
import type { RunChange } from '../../../domain/jobs/job-store.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'

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

export function toFinish(finish: NonNullable<RunChange['finish']>): Finish {
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
