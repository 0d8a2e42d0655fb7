/** A job in the words of the wire: every required key present, dates as UTC text with milliseconds. Pure. */
import type { Job, JobError, Output, Progress } from '../../../domain/jobs/job.ts'
import { labelOf } from '../../../domain/jobs/submit/job-metadata.ts'
import { toWireHash } from './asset-view.ts'
import { type ContentLinks, type JobLinkStyle, type LinkBase, toJobUrls } from './links.ts'

/** How this caller reached us, and where bytes are. */
export interface ViewBase extends LinkBase {
  readonly contentLinks: ContentLinks
}

/** Without its outputs: there may be thousands, which are written one by one. */
export function toJobView(job: Job, base: LinkBase, linkStyle: JobLinkStyle) {
  return {
    id: job.id,
    status: job.status,
    created_at: job.createdAt.toISOString(),
    started_at: job.startedAt?.toISOString() ?? null,
    completed_at: job.completedAt?.toISOString() ?? null,
    expires_at: job.expiresAt.toISOString(),
    queue_position: job.status === 'queued' ? job.queuePosition : null,
    progress: job.progress === null ? null : toProgressView(job.progress),
    outputs: [],
    error: job.error === null ? null : toJobErrorView(job.error),
    metrics: {
      queue_ms: toMs(job.createdAt, job.startedAt),
      execution_ms: toMs(job.startedAt, job.completedAt),
    },
    metadata: toMetadataView(job.metadata),
    priority: job.priority,
    outputs_reused: job.outputsReused,
    outputs_replaced: job.outputsReplaced,
    ...(job.reusedFrom !== undefined && { reused_from: job.reusedFrom }),
    urls: toJobUrls(job.id, base, linkStyle),
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

/** The content stays as long as the job is kept: no address outlives that. */
export function toOutputText(output: Output, job: Job, base: ViewBase): string {
  const asset = { accountId: job.accountId, assetId: output.assetId, endsAt: job.expiresAt }
  const link = base.contentLinks.steady(asset, base)
  return JSON.stringify({
    node_id: output.nodeId,
    name: output.name,
    type: output.type,
    content_type: output.contentType,
    size_bytes: output.sizeBytes,
    id: output.assetId,
    hash: toWireHash(output.hash),
    url: link.url,
    url_expires_at: link.expiresAt.toISOString(),
    job_id: job.id,
  })
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

/** As it was sent: a map, or one text. */
function toMetadataView(metadata: Job['metadata']): Job['metadata'] | string {
  return labelOf(metadata) ?? metadata
}

function toMs(from: Date | null, to: Date | null): number | null {
  return from === null || to === null ? null : Math.max(0, to.getTime() - from.getTime())
}
