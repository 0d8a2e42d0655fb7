/** A batch as the contract shows it. */
import type { BatchLimit, JobState, StoredBatch } from '../../../domain/jobs/batches/batch.ts'
import { insufficientCredits, queueFull } from '../../../domain/jobs/submit/submit-refusals.ts'
import { isTerminal, JOB_STATUSES, type JobStatus } from '../../../domain/jobs/transitions.ts'
import { toComplaint } from '../jobs-errors.ts'
import { API_PATH, type JobLinkStyle, type LinkBase } from './links.ts'

export interface BatchLinks {
  readonly base: LinkBase
  readonly style: JobLinkStyle
}

export function toBatchView(batch: StoredBatch, links: BatchLinks) {
  const { id, createdAt, expiresAt, isWhole, jobIds, states } = batch
  const accepted = jobIds.filter((jobId) => jobId !== null).length
  const known = [...states.values()]
  return {
    id,
    created_at: createdAt.toISOString(),
    expires_at: expiresAt.toISOString(),
    mode: isWhole ? 'all_or_nothing' : 'per_item',
    total: jobIds.length,
    accepted,
    refused: jobIds.length - accepted,
    counts: countStates(known),
    progress: toProgress(known),
    is_done: known.every(({ status }) => isTerminal(status)),
    items: toItems(batch),
    urls: toUrls(id, links),
  }
}

function countStates(states: readonly JobState[]): Record<JobStatus, number> {
  const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>
  for (const { status } of states) counts[status] += 1
  return counts
}

/** To a thousandth, downwards: 1 means that all have ended. */
function toProgress(states: readonly JobState[]): number {
  if (states.length === 0) return 1
  const done = states.reduce((sum, { status, progress }) => sum + (isTerminal(status) ? 1 : (progress ?? 0)), 0)
  return Math.floor((1000 * done) / states.length) / 1000
}

const LIMIT_REFUSALS: Readonly<Record<BatchLimit, ReturnType<typeof toComplaint>>> = {
  queue_full: toComplaint(queueFull(1)),
  insufficient_credits: { ...toComplaint(insufficientCredits(null)), details: null },
}

function toItems({ jobIds, refused, limitedBy, states }: StoredBatch) {
  const refusals = new Map(refused.map((item) => [item.index, toComplaint(item)]))
  return jobIds.map((jobId, index) => ({
    index,
    job_id: jobId,
    status: jobId === null ? null : (states.get(jobId)?.status ?? null),
    error: jobId !== null ? null : (refusals.get(index) ?? (limitedBy === null ? null : LIMIT_REFUSALS[limitedBy])),
  }))
}

function toUrls(id: string, { base: { origin, mountPrefix }, style: { isAbsolute } }: BatchLinks) {
  const root = `${isAbsolute ? origin : ''}${mountPrefix}${API_PATH}`
  const self = `${root}/batches/${id}`
  return { self, jobs: `${root}/jobs?batch_id=${id}`, cancel: `${self}/cancel`, outputs: `${self}/outputs.zip` }
}
