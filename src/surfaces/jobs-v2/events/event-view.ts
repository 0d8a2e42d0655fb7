/** Event frames in the words of the wire, each made into bytes once for all its readers. Pure. */
import type { Job, Progress } from '../../../domain/jobs/job.ts'
import { isTerminal } from '../../../domain/jobs/transitions.ts'
import { encodeFrame } from '../../kit/streams/sse.ts'
import { toJobErrorView, toProgressView } from '../views/job-view.ts'

/** A terminal status carries outputs, each as JSON text, and error, so that a reader needs no further request. */
export function toStatusFrame(job: Job, outputs: readonly string[]): Buffer {
  return encodeFrame('status', toStatusText(job, outputs))
}

function toStatusText(job: Job, outputs: readonly string[]): string {
  if (job.status === 'queued') return JSON.stringify({ status: job.status, queue_position: job.queuePosition })
  if (!isTerminal(job.status)) return JSON.stringify({ status: job.status })
  const error = job.error === null ? null : toJobErrorView(job.error)
  const list = outputs.join(',')
  return `{"status":"${job.status}","queue_position":null,"outputs":[${list}],"error":${JSON.stringify(error)}}`
}

/** A new attempt began: outputs that were told before this frame no longer count. */
export function toOutputsResetFrame({ outputsReplaced }: Job): Buffer {
  return encodeFrame('outputs_reset', JSON.stringify({ outputs_replaced: outputsReplaced }))
}

export function toProgressFrame(progress: Progress): Buffer {
  return encodeFrame('progress', JSON.stringify(toProgressView(progress)))
}

export function toOutputFrame(text: string): Buffer {
  return encodeFrame('output', text)
}
