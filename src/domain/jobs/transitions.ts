/**
 * Which status of a job may follow which. Whoever ends a run, here or as a joined worker, takes from here the states in which it may.
 * The store writes its moves in SQL; a test with random histories (test/domain/jobs/model.test.ts) compares what it did with this table.
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

/** How a run may end its job. */
export type RunEndStatus = Extract<JobStatus, 'succeeded' | 'failed' | 'canceled'>

/** The states in which the worker that holds a job may end it so: what the compare-and-set of its last write must find. */
export function statesBeforeEnd(to: RunEndStatus): readonly JobStatus[] {
  return JOB_STATUSES.filter((from) => isHeld(from) && canMove(from, to))
}

export function isTerminal(status: JobStatus): boolean {
  return NEXT[status].length === 0
}

/** A worker holds the job. */
export function isHeld(status: JobStatus): boolean {
  return status === 'running' || status === 'canceling'
}
