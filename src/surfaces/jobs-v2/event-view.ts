/** Event frames in the words of the wire, each made into bytes once for all its readers. Pure. */
import type { Job, Output, Progress } from '../../domain/jobs/job.ts'
import { isTerminal } from '../../domain/jobs/transitions.ts'
import type { Preview } from '../../domain/jobs/watch-job.ts'
import { encodeFrame } from '../kit/sse.ts'
import { toJobErrorView, toOutputView, toProgressView, type ViewBase } from './job-view.ts'

/** A terminal status carries outputs and error, so that a reader needs no further request. */
export function toStatusFrame(job: Job, base: ViewBase): Buffer {
  return encodeFrame('status', JSON.stringify(toStatusData(job, base)))
}

function toStatusData(job: Job, base: ViewBase): object {
  if (job.status === 'queued') return { status: job.status, queue_position: job.queuePosition }
  if (!isTerminal(job.status)) return { status: job.status }
  return {
    status: job.status,
    queue_position: null,
    outputs: job.outputs.map((output) => toOutputView(output, job, base)),
    error: job.error === null ? null : toJobErrorView(job.error),
  }
}

/** A new attempt began: outputs that were told before this frame no longer count. */
export function toOutputsResetFrame({ outputsReplaced }: Job): Buffer {
  return encodeFrame('outputs_reset', JSON.stringify({ outputs_replaced: outputsReplaced }))
}

export function toProgressFrame(progress: Progress): Buffer {
  return encodeFrame('progress', JSON.stringify(toProgressView(progress)))
}

export function toPreviewFrame({ nodeId, contentType, bytes }: Preview): Buffer {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return encodeFrame('preview', JSON.stringify({ node_id: nodeId, content_type: contentType, data_base64: data }))
}

export function toOutputFrame(output: Output, job: Job, base: ViewBase): Buffer {
  return encodeFrame('output', JSON.stringify(toOutputView(output, job, base)))
}
