/** Event frames in the words of the wire, each made into bytes once for all its readers. Pure. */
import type { Job, Progress } from '../../domain/jobs/job.ts'
import { isTerminal } from '../../domain/jobs/transitions.ts'
import type { Preview } from '../../domain/jobs/watch-job.ts'
import { encodeFrame } from '../kit/sse.ts'
import { toJobErrorView, toProgressView } from './job-view.ts'

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

/**
 * What a stream of a finished job begins with when outputs follow: the first frame is a status, and no output may come after
 * a terminal one, so the stream replays the state in which the outputs were made.
 */
export function toReplayedStatusFrame(): Buffer {
  return encodeFrame('status', JSON.stringify({ status: 'running' }))
}

export function toProgressFrame(progress: Progress): Buffer {
  return encodeFrame('progress', JSON.stringify(toProgressView(progress)))
}

export function toPreviewFrame({ nodeId, contentType, bytes }: Preview): Buffer {
  const data = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
  return encodeFrame('preview', JSON.stringify({ node_id: nodeId, content_type: contentType, data_base64: data }))
}

export function toOutputFrame(text: string): Buffer {
  return encodeFrame('output', text)
}
