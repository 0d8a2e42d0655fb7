/**
 * Which status of a job may follow which. Runs take from here the states in which they may end a job. The store writes its moves in
 * SQL; a test with random histories (test/domain/jobs/model.test.ts) compares what it did with this table.
 */
export type JobStatus = 'queued' | 'running' | 'succeeded' | 'canceling' | 'canceled' | 'failed' | 'expired'

const NEXT = {
  // `succeeded`: answered with the result of an equal earlier job. A waiting job that can never run (its credentials are lost, or no
  // engine has its classes) is claimed before it fails.
  queued: ['running', 'succeeded', 'canceled', 'expired'],
  // `queued`: the lease was lost, and the job waits for its next attempt; or it was given back, in a drain or to let others have their turn.
  running: ['succeeded', 'failed', 'canceling', 'queued', 'expired'],
  canceling: ['canceled', 'succeeded', 'failed', 'expired'],
  succeeded: [],
  canceled: [],
  failed: [],
  expired: [],
} as const satisfies Record<JobStatus, readonly JobStatus[]>

export const JOB_STATUSES = Object.keys(NEXT) as readonly JobStatus[]

export function canMove(from: JobStatus, to: JobStatus): boolean {
  return (NEXT[from] as readonly JobStatus[]).includes(to)
}

/** Every state from which `to` may be reached: what a compare-and-set must find. */
export function statesBefore(to: JobStatus): readonly JobStatus[] {
  return JOB_STATUSES.filter((from) => canMove(from, to))
}

export function isTerminal(status: JobStatus): boolean {
  return NEXT[status].length === 0
}

/** A worker holds the job. */
export function isHeld(status: JobStatus): boolean {
  return status === 'running' || status === 'canceling'
}
