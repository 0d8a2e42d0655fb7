/**
 * The status words of this surface, derived from the status of a job. There are two vocabularies: the words of the status
 * route, of which exactly five are final, and the five groups of the job list.
 */
import type { Job, JobError } from '../../../domain/jobs/job.ts'
import type { JobStatus } from '../../../domain/jobs/transitions.ts'

type StatusWord =
  | 'submitted'
  | 'queued_limited'
  | 'queued_waiting'
  | 'preparing'
  | 'executing'
  | 'cancel_requested'
  | 'success'
  | 'error'
  | 'non_retryable_error'
  | 'lost'
  | 'cancelled'

export const GROUP_WORDS = ['pending', 'in_progress', 'completed', 'failed', 'cancelled'] as const
export type GroupWord = (typeof GROUP_WORDS)[number]

interface StatusFacts {
  readonly now: Date
  /** The account runs as many jobs as it may. */
  readonly isAtLimit: boolean
}

// The first moment after a submit, before the queue has had a chance to look at the job.
const JUST_ACCEPTED_MS = 1000

export function toStatusWord(job: Job, facts: StatusFacts): StatusWord {
  return WORD[job.status](job, facts)
}

const WORD: Readonly<Record<JobStatus, (job: Job, facts: StatusFacts) => StatusWord>> = {
  queued: toQueuedWord,
  // Progress comes with the engine's first event.
  running: (job) => (job.progress === null ? 'preparing' : 'executing'),
  canceling: () => 'cancel_requested',
  succeeded: () => 'success',
  canceled: () => 'cancelled',
  failed: ({ error }) => toFailedWord(error),
  // A final word, so that clients stop polling a job that did not end in time.
  expired: () => 'lost',
}

function toQueuedWord(job: Job, { now, isAtLimit }: StatusFacts): StatusWord {
  if (job.attempt === 0 && now.getTime() - job.createdAt.getTime() < JUST_ACCEPTED_MS) return 'submitted'
  return isAtLimit ? 'queued_limited' : 'queued_waiting'
}

/** The worker or its engine was lost: what became of the run is unknown. */
const LOST_CODES: ReadonlySet<string> = new Set(['worker_lost', 'engine_lost'])
/** The workflow or its inputs are at fault: the same prompt fails again. */
const FINAL_CODES: ReadonlySet<string> = new Set([
  'invalid_workflow',
  'validation_failed',
  'engine_rejected',
  'missing_node_type',
  'missing_node_class',
  'missing_model',
  'missing_weights',
  'missing_asset',
  'input_too_large',
  'too_many_outputs',
  'output_too_large',
])

function toFailedWord(error: JobError | null): StatusWord {
  if (error !== null && LOST_CODES.has(error.code)) return 'lost'
  return error !== null && FINAL_CODES.has(error.code) ? 'non_retryable_error' : 'error'
}

const GROUP: Readonly<Record<JobStatus, GroupWord>> = {
  queued: 'pending',
  running: 'in_progress',
  canceling: 'in_progress',
  succeeded: 'completed',
  failed: 'failed',
  canceled: 'cancelled',
  expired: 'failed',
}

export function toGroupWord(job: Job): GroupWord {
  return GROUP[job.status]
}

/** The statuses of a group; expired jobs are in none, because lists do not show them. */
export function statesOfGroup(group: GroupWord): readonly JobStatus[] {
  return (Object.keys(GROUP) as JobStatus[]).filter((status) => GROUP[status] === group && status !== 'expired')
}
