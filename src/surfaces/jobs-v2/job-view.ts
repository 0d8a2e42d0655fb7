/** A job in the words of the wire: every required key present, dates as UTC text with milliseconds. Pure. */
import type { Job, JobError, Output, Progress } from '../../domain/jobs/job.ts'
import { type LinkBase, toContentUrl, toJobUrls } from './links.ts'

export function toJobView(job: Job, base: LinkBase) {
  return {
    id: job.id,
    status: job.status,
    created_at: job.createdAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    completed_at: job.completedAt?.toISOString() ?? null,
    expires_at: job.expiresAt.toISOString(),
    queue_position: job.status === 'queued' ? job.queuePosition : null,
    progress: job.progress === null ? null : toProgressView(job.progress),
    outputs: job.outputs.map((output) => toOutputView(output, job, base)),
    error: job.error === null ? null : toJobErrorView(job.error),
    metrics: {
      queue_ms: toMs(job.createdAt, job.startedAt),
      execution_ms: toMs(job.startedAt, job.completedAt),
    },
    metadata: job.metadata,
    priority: job.priority,
    outputs_reused: job.outputsReused,
    urls: toJobUrls(job.id, base),
  }
}

export function toProgressView(progress: Progress) {
  return {
    value: progress.value,
    nodes_done: progress.nodesDone,
    nodes_total: progress.nodesTotal,
    current_node: progress.currentNode,
    current_node_class: progress.currentNodeClass,
    step: progress.step,
    steps: progress.steps,
    message: progress.message,
  }
}

/** The content stays reachable as long as the job is kept, so that is when its URL expires. */
export function toOutputView(output: Output, job: Job, base: LinkBase) {
  return {
    node_id: output.nodeId,
    name: output.name,
    type: output.type,
    content_type: output.contentType,
    size_bytes: output.sizeBytes,
    id: output.assetId,
    hash: `blake3:${output.hash}`,
    url: toContentUrl(output.assetId, base),
    url_expires_at: job.expiresAt.toISOString(),
    job_id: job.id,
  }
}

export function toJobErrorView(error: JobError) {
  return {
    code: error.code,
    message: error.message,
    node_id: error.nodeId,
    class_type: error.classType,
    traceback: error.traceback,
  }
}

function toMs(from: Date | null, to: Date | null): number | null {
  return from === null || to === null ? null : Math.max(0, to.getTime() - from.getTime())
}
