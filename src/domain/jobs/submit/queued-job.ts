import type { Job } from '../job.ts'
import type { NewJob } from '../job-store.ts'

/** A job as it stands a moment after its submit. */
export function toQueuedJob(job: NewJob, queuePosition: number): Job {
  return {
    id: job.id,
    accountId: job.accountId,
    pool: job.pool,
    status: 'queued',
    priority: job.priority,
    metadata: job.metadata,
    createdAt: job.createdAt,
    startedAt: null,
    completedAt: null,
    expiresAt: job.expiresAt,
    queuePosition,
    progress: null,
    outputs: [],
    error: null,
    outputsReused: false,
    outputsReplaced: 0,
    attempt: 0,
    version: 1,
  }
}
