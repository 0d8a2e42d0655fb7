/** A job in short, as the wire has it: at most about 400 bytes, whatever the job is like. */
import { writeUsd } from '../../../../lib/text/usd.ts'
import type { JobSummary } from '../../../domain/jobs/summaries/summary-store.ts'

const MAX_PAIRS = 3
const MAX_VALUE_LENGTH = 60

export function toSummaryView(job: JobSummary) {
  const { progress, error, thumb } = job
  return {
    id: job.id,
    version: job.version,
    status: job.status,
    title: job.title,
    pool: job.pool,
    engine: job.engineId,
    priority: job.priority,
    attempt: job.attempt,
    created_at: job.createdAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    completed_at: job.completedAt?.toISOString() ?? null,
    expires_at: job.expiresAt.toISOString(),
    value: progress?.value ?? null,
    node: progress?.currentNode == null ? null : { id: progress.currentNode, class_type: progress.currentNodeClass },
    step: progress?.step ?? null,
    steps: progress?.steps ?? null,
    error:
      error === null
        ? null
        : { code: error.code, message: error.message, node_id: error.nodeId, class_type: error.classType },
    cost_usd: job.charged === null ? null : writeUsd(job.charged),
    outputs: job.outputs,
    thumb: thumb === null ? null : { asset_id: thumb.assetId, type: 'image' },
    queue_position: job.queuePosition,
    reused_from: job.reusedFrom,
    metadata: toShortMetadata(job.metadata),
  }
}

/** Without what is null: of most jobs that have ended that is a fifth of the letters. */
export function toCompactView(job: JobSummary): object {
  return Object.fromEntries(Object.entries(toSummaryView(job)).filter(([, value]) => value !== null))
}

/** The title is told already. */
function toShortMetadata(metadata: JobSummary['metadata']): Record<string, string> {
  const pairs = Object.entries(metadata).filter(([key]) => key !== '' && key !== 'name' && key !== 'title')
  // Not by assignment: a key may be called `__proto__`.
  return Object.fromEntries(pairs.slice(0, MAX_PAIRS).map(([key, value]) => [key, value.slice(0, MAX_VALUE_LENGTH)]))
}
