/** Every text message of the socket, with exactly the keys that clients know, in their order. Pure. */
import type { NodeRef } from '../../../../engine/graph/run-event.ts'
import type { LiveEvent, LiveFailure } from '../../../domain/events/live-event.ts'
import { toShownOutput } from '../../../domain/jobs/run/record/run-record.ts'
import { toExceptionMessage, toExceptionType, toNodeNames, toTraceback } from '../jobs/exception-types.ts'
import type { RunProgress } from './run-progress.ts'

type ReportEvent = Extract<LiveEvent, { type: 'node_report' }>
type ProgressEvent = Extract<LiveEvent, { type: 'node_progress' }>
type BlockedEvent = Extract<LiveEvent, { type: 'node_blocked' }>

const MAX_SHOWN_EXECUTED = 1000
/** The terminal size that is reported to clients; there is no terminal. */
export const TERMINAL_SIZE = { cols: 80, rows: 24 }

function toMessage(type: string, data: object): string {
  return `{"type":"${type}","data":${JSON.stringify(data)}}`
}

/** The first one of a connection carries the id of the client. */
export function statusMessage(queueRemaining: number, sid?: string): string {
  return toMessage('status', {
    status: { exec_info: { queue_remaining: queueRemaining } },
    ...(sid !== undefined && { sid }),
  })
}

export function featureFlagsMessage(features: object): string {
  return toMessage('feature_flags', features)
}

export function startMessage(jobId: string, timestamp: number): string {
  return toMessage('execution_start', { prompt_id: jobId, timestamp })
}

export function cachedMessage(jobId: string, nodes: readonly string[], timestamp: number): string {
  return toMessage('execution_cached', { nodes, prompt_id: jobId, timestamp })
}

export function progressStateMessage(run: RunProgress): string {
  return `{"type":"progress_state","data":{"prompt_id":${JSON.stringify(run.jobId)},"nodes":${run.nodesJson()}}}`
}

export function executingMessage(jobId: string, { nodeId, displayNodeId }: NodeRef): string {
  return toMessage('executing', { node: nodeId, display_node: displayNodeId, prompt_id: jobId })
}

/** The end of a run, however it ended. */
export function executingNothingMessage(jobId: string): string {
  return toMessage('executing', { node: null, prompt_id: jobId })
}

/** For a client that connects again in the middle of its run; ComfyUI names no job here. */
export function stillExecutingMessage({ displayNodeId }: NodeRef): string {
  return toMessage('executing', { node: displayNodeId })
}

export function progressMessage(jobId: string, { value, max, nodeId }: ProgressEvent): string {
  return toMessage('progress', { value, max, prompt_id: jobId, node: nodeId })
}

export function executedMessage(jobId: string, { nodeId, displayNodeId, report }: ReportEvent): string {
  const output = toShownOutput(report)
  return toMessage('executed', { node: nodeId, display_node: displayNodeId, output, prompt_id: jobId })
}

export function successMessage(jobId: string, timestamp: number): string {
  return toMessage('execution_success', { prompt_id: jobId, timestamp })
}

/** An error in form only: the branch ends here and the run goes on. */
export function blockedMessage(run: RunProgress, { nodeId, classType, message }: BlockedEvent): string {
  return toMessage('execution_error', {
    prompt_id: run.jobId,
    node_id: nodeId,
    node_type: classType,
    // A graph may have thousands of blocked nodes, and each message would name all nodes that have run.
    executed: run.executed.slice(-MAX_SHOWN_EXECUTED),
    exception_message: `Execution Blocked: ${message}`,
    exception_type: 'ExecutionBlocked',
    traceback: [],
    current_inputs: [],
    current_outputs: [],
  })
}

export function errorMessage(run: RunProgress, failure: LiveFailure, timestamp: number): string {
  return toMessage('execution_error', {
    prompt_id: run.jobId,
    ...toNodeNames(failure.nodeId, failure.classType),
    executed: failure.executed ?? run.executed,
    exception_message: toExceptionMessage(failure.message),
    exception_type: toExceptionType(failure, failure.exceptionType),
    traceback: toTraceback(failure.traceback),
    current_inputs: failure.currentInputs ?? {},
    current_outputs: failure.currentOutputs ?? [],
    timestamp,
  })
}

export function interruptedMessage(run: RunProgress, timestamp: number): string {
  return toMessage('execution_interrupted', {
    prompt_id: run.jobId,
    ...toNodeNames(run.current?.nodeId ?? null, run.current?.classType ?? null),
    executed: run.executed,
    timestamp,
  })
}

/** A sentence for people about one job. */
export function notificationMessage(jobId: string, value: string): string {
  return toMessage('notification', { value, id: jobId, prompt_id: jobId })
}

/** What runs printed. */
export function logsMessage(entries: readonly object[]): string {
  return toMessage('logs', { entries, size: TERMINAL_SIZE })
}
