/**
 * How a run ends when the server's history does not say it: as an outcome of the job where that much is known, else as a lost
 * attempt (EngineLostError), which another engine may repeat. Pure.
 */
import type { EngineEvent, EngineFailure } from '../../../../../engine/graph/run-event.ts'
import { EngineLostError } from '../../../../domain/engine/engine-lost-error.ts'
import type { ComfyBounds } from '../comfy-bounds.ts'
import type { CallError } from '../wire/comfy-http.ts'
import type { FailureCode } from './failure-code.ts'
import { type FailureContext, toFailure } from './node-failure.ts'
import type { TranslateState } from './translate-messages.ts'

/** Why a waiting run was withdrawn. `idle`: nothing ran on the server. `still`: the same prompt ran for too long. */
export type Standstill = 'idle' | 'still'

export interface EndingContext {
  readonly bounds: Pick<ComfyBounds, 'idleMs' | 'queueStillMs' | 'stallMs'>
  /** The run was to be stopped: then whatever else ended it, it was interrupted. */
  readonly isStopped: boolean
  readonly emitter: {
    /** What the socket said. */
    readonly heard: Pick<TranslateState, 'end' | 'error' | 'current'>
    /** Nodes whose report was emitted. */
    readonly reported: ReadonlySet<string>
  }
  readonly failure: FailureContext
}

const INTERRUPTED: EngineEvent = { type: 'interrupted' }

export function endWithdrawn(why: Standstill, { bounds, isStopped }: EndingContext): EngineEvent {
  if (isStopped) return INTERRUPTED
  const isIdle = why === 'idle'
  const seconds = Math.round((isIdle ? bounds.idleMs : (bounds.queueStillMs ?? 0)) / 1000)
  const what = isIdle ? 'nothing ran there' : 'it stood behind the same prompt, and nothing was heard of that'
  const message = `the engine did not begin the run: for ${seconds} s ${what}`
  throw new EngineLostError('engine_idle', message, { isUnfit: isIdle, isUntouched: true })
}

/** The server began the run while it was being withdrawn, and the interrupt ended it. */
export function beganLate(): EngineLostError {
  return new EngineLostError('engine_idle', 'the engine began the run only while it was withdrawn')
}

/** The server's thread that runs prompts seems dead. A node that was running is blamed: repeated, it would kill the next server. */
export function endUnrecorded({ emitter, failure, isStopped }: EndingContext): EngineEvent {
  const { error, current } = emitter.heard
  if (hasSucceeded(emitter)) return { type: 'succeeded' }
  if (error !== null) return { type: 'failed', failure: toFailure(error, failure) }
  if (isStopped) return INTERRUPTED
  if (current !== null) return failAtNode(emitter, 'node_execution_error', (node) => `the engine's worker died${node}`)
  throw new EngineLostError('engine_stuck', 'the thread of the engine that runs prompts has died', { isUnfit: true })
}

export function endStalled({ emitter, bounds }: EndingContext): EngineEvent {
  const seconds = Math.round((bounds.stallMs ?? 0) / 1000)
  return failAtNode(emitter, 'stalled', (node) => `nothing happened${node} for ${seconds} s; the run was stopped`)
}

/** The run is in neither queue nor history. null: the server has forgotten it, and what became of it is not known. */
export function endForgotten({ emitter, isStopped }: EndingContext): EngineEvent | null {
  if (hasSucceeded(emitter)) return { type: 'succeeded' }
  return isStopped ? INTERRUPTED : null
}

/** An attempt that was lost because the server could not be talked to. */
export function lostByCall(what: string, cause: CallError): EngineLostError {
  const code = cause.fault === 'status' || cause.fault === 'malformed' ? 'engine_overloaded' : 'engine_unreachable'
  return new EngineLostError(code, `${what}: ${cause.message}`, { cause })
}

export function failed(code: FailureCode, message: string, node: Partial<EngineFailure> = {}): EngineEvent {
  const unknown = { nodeId: null, classType: null, traceback: null, exceptionType: 'EngineError' }
  return { type: 'failed', failure: { code, message, ...unknown, ...node } }
}

/** The socket told of a success, and outputs came with it. */
function hasSucceeded({ heard, reported }: EndingContext['emitter']): boolean {
  return heard.end === 'success' && reported.size > 0
}

/** In the node that was running, as far as that is known. */
function failAtNode(
  { heard }: EndingContext['emitter'],
  code: FailureCode,
  toMessage: (node: string) => string,
): EngineEvent {
  const { current } = heard
  const node = current === null ? '' : ` in node ${current.displayNodeId} (${current.classType})`
  const about = { nodeId: current?.displayNodeId ?? null, classType: current?.classType ?? null }
  return failed(code, toMessage(node), about)
}
