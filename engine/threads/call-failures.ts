/** How calls on other threads fail, as errors of their nodes. */
import type { CallResult } from '../node/node-context.ts'
import { type FailureText, Interrupted, NodeError } from '../node/node-error.ts'
import type { ComputeTask } from '../run/calls/call-node.ts'
import type { Recognise } from '../values/wire-value.ts'
import type { WireResult } from './protocol.ts'
import { fromWireResult } from './wire-result.ts'

const MIB = 1_048_576

/** A NodeError says what is wrong with the result of a node; anything else was not made by our code. */
export function readResult(result: WireResult, recognise: Recognise): CallResult | NodeError {
  try {
    return fromWireResult(result, recognise)
  } catch (error) {
    if (error instanceof NodeError) return error
    throw error
  }
}

export function toError(failure: FailureText | 'interrupted'): Error {
  if (failure === 'interrupted') return new Interrupted()
  return new NodeError(failure.exceptionType, failure.message, failure.traceback)
}

export function tookTooLong(task: ComputeTask, timeoutMs: number): NodeError {
  const limit = timeoutMs < 1000 ? `${timeoutMs} ms` : `${timeoutMs / 1000} s`
  const { classType } = task.node
  const message = `${classType} did not finish within ${limit} (setting nodeTimeout); its thread was ended`
  return new NodeError('TimeoutError', message)
}

export function tooMuch(task: ComputeTask, bytes: number): NodeError {
  const limit = `${Math.ceil(bytes / MIB)} MiB`
  const message =
    `${task.node.classType} held more than ${limit} in buffers, which is all that the engine may use; its thread was ended. ` +
    "Use smaller inputs, or raise the engine's memory limit"
  return new NodeError('MemoryError', message)
}
