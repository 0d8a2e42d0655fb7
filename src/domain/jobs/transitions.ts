/**
 * Which status of a job may follow which, and which move an event makes. Runs take from here the states in which they may end a job.
 * Stores make no other moves: they ask the functions below, and `mustMove` stands beside each statement that changes a status. A test
 * with random histories (test/domain/jobs/model.test.ts) compares what they did with this table.
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

export function isRunEnd(status: JobStatus): status is RunEndStatus {
  return status === 'succeeded' || status === 'failed' || status === 'canceled'
}

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

/** A store that is about to make another move has a defect, and writes nothing. */
export function mustMove(from: JobStatus, to: JobStatus): void {
  if (!canMove(from, to)) throw new Error(`A job that is ${from} cannot become ${to}.`)
}

/** Its owner cancels the job: what it becomes; null: it stays as it is. */
export function afterCancel(status: JobStatus): 'canceled' | 'canceling' | null {
  if (status === 'queued') return 'canceled'
  return status === 'running' ? 'canceling' : null
}

/** The worker that holds the job gives it back. */
export function afterReturn(status: JobStatus): 'queued' | 'canceled' {
  return status === 'canceling' ? 'canceled' : 'queued'
}

/** The lease has run out: the next attempt, unless a cancel was under way or all attempts are spent. */
export function afterLapse(status: JobStatus, isLastAttempt: boolean): 'queued' | 'canceled' | 'failed' {
  if (status === 'canceling') return 'canceled'
  return isLastAttempt ? 'failed' : 'queued'
}
