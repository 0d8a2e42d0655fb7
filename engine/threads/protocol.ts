/**
 * What threads say to each other. The program that opened the engine sends runs to the engine's process, which posts them to the
 * engine thread, and gets batches of events; the engine thread posts calls to compute threads and to those of custom nodes, and gets
 * results. All of it is plain data; tensors are shared within the process.
 */
import type { MessagePort } from 'node:worker_threads'
import type { CorePlaces } from '../bands/band-board.ts'
import type { CustomNodes, NodeLimits } from '../custom/custom-nodes.ts'
import type { CallSurroundings, ValueLimits } from '../node/node-call.ts'
import {
  type CallResult,
  GraphBuilder,
  type InputFile,
  type MadeReport,
  type ProgressExtras,
} from '../node/node-context.ts'
import { type FailureText, Interrupted, NodeError } from '../node/node-error.ts'
import type { ComputeTask } from '../run/calls/call-node.ts'
import type { RunEvent } from '../run/run-state.ts'
import { Blocker, type Value } from '../values/value.ts'
import {
  fromWire,
  fromWireRecord,
  type Recognise,
  toWire,
  toWireRecord,
  type WireRecord,
  type WireValue,
} from '../values/wire-value.ts'
import type { WireModelAnswer, WireModelCall } from './model-line.ts'

/** Given to the engine thread when it starts. */
export interface EngineThreadData {
  readonly threads: number
  /** How many cores the work on one large picture may use. */
  readonly cores: number
  readonly memoryLimitBytes: number
  /** Of that, what one run may have at a time. */
  readonly runMemoryBytes: number
  readonly values: ValueLimits
  /** The longest time that one call of a built-in node may take. */
  readonly nodeTimeoutMs: number
  readonly pulse: Pulse
  readonly maxImagePixels: number
  readonly nodeModules: readonly string[]
  readonly custom: { readonly nodes: CustomNodes; readonly limits: NodeLimits }
  /** Where large files of reports are written for the opener. */
  readonly asideFolder: string
  /** Fixed letters for preview names, or null for random ones. */
  readonly letters: readonly string[] | null
}

/** Given to its process, which adds what the two share. */
export type EngineProcessData = Omit<EngineThreadData, 'pulse'>

/**
 * Shared memory in which the engine thread shows that it lives and what it works on, so that whoever finds it dead or stuck knows
 * which run caused that. It holds the id of the run plus one (0: none), and a number that changes while its event loop turns.
 */
export type Pulse = Int32Array<SharedArrayBuffer>
export const PULSE = { runAtWork: 0, beats: 1, words: 2 } as const

/** One word of shared memory: not zero once the run is cancelled. */
export type CancelFlag = Int32Array<SharedArrayBuffer>

export interface RunMessage {
  readonly type: 'run'
  readonly runId: number
  readonly owner: string
  /** Text, because cloning would turn `1.0` into `1`. */
  readonly graphText: string
  readonly extraPngInfoText: string | null
  readonly files: Readonly<Record<string, InputFile>>
  readonly cancelFlag: CancelFlag
  /** The time that output names may show. */
  readonly nowMs: number
}

export type ToEngine =
  | RunMessage
  | { readonly type: 'cancel'; readonly runId: number }
  /** The reader has taken events of this weight. */
  | { readonly type: 'taken'; readonly runId: number; readonly weight: number }
  | { readonly type: 'numbers'; readonly requestId: number; readonly first: number | null }
  | { readonly type: 'model_answer'; readonly requestId: number; readonly answer: WireModelAnswer }

export type FromEngine =
  | { readonly type: 'ready' }
  | { readonly type: 'events'; readonly runId: number; readonly events: readonly RunEvent[] }
  | ({ readonly type: 'reserve'; readonly runId: number; readonly requestId: number } & NumberRequest)
  | { readonly type: 'model_call'; readonly runId: number; readonly requestId: number; readonly call: WireModelCall }
  /** A defect of the engine ended the run: no further events come. */
  | { readonly type: 'broken'; readonly runId: number; readonly detail: string }

/** To the process of the engine. */
export type ToProcess =
  /** The first message. */
  | { readonly type: 'open'; readonly data: EngineProcessData }
  | (Omit<RunMessage, 'cancelFlag'> & { readonly isCancelled: boolean })
  | Exclude<ToEngine, RunMessage>
  /** Ends the engine thread, and then the process. */
  | { readonly type: 'end'; readonly verdict: string }

export type FromProcess =
  | FromEngine
  /** What the process occupies: sent when it has changed. */
  | { readonly type: 'memory'; readonly bytes: number }
  /** The last message: the engine thread is gone. `runAtWork`: the run that it was working on; -1: none. */
  | { readonly type: 'ended'; readonly reason: string; readonly runAtWork: number }

export interface NumberRequest {
  readonly subfolder: string
  readonly prefix: string
  readonly count: number
}

export interface ComputeThreadData {
  readonly nodeModules: readonly string[]
  readonly memory: MemoryLine
  readonly places: CorePlaces
  /** Under which number it takes places for helpers. */
  readonly owner: number
}

/** How a thread that runs nodes asks for memory, and waits for it without leaving the code of its node. */
export interface MemoryLine {
  readonly port: MessagePort
  /** Set to 1 when an answer lies in the port. */
  readonly bell: Int32Array<SharedArrayBuffer>
}

export type MemoryRequest =
  | { readonly type: 'allocate'; readonly bytes: number }
  | { readonly type: 'reserve'; readonly bytes: number; readonly besideBytes: number }
  /** Ends the reservation of the call. Not answered. */
  | { readonly type: 'unreserve' }

/** The buffer is null for what was only to be counted. */
export type MemoryAnswer = { readonly buffer: SharedArrayBuffer | null } | { readonly failure: FailureText }

/** A call on its way to a thread. `Surroundings`: what threads of this kind are told of the call. */
export interface CallMessage<Surroundings> {
  readonly type: 'call'
  readonly classType: string
  readonly inputs: WireRecord
  readonly call: Surroundings
  readonly cancelFlag: CancelFlag
}

/** To a thread that runs nodes, built-in or custom ones. */
export type ToThread<Surroundings = CallSurroundings> =
  | CallMessage<Surroundings>
  | { readonly type: 'numbers'; readonly requestId: number; readonly first: number | null }
  /** The run of the present call was cancelled, which the flag of the call says as well. */
  | { readonly type: 'cancel' }
  | { readonly type: 'collect' }

interface WireResult {
  readonly outputs: WireValue
  readonly report: MadeReport | null
  readonly expand: readonly { readonly id: string; readonly classType: string; readonly inputs: WireRecord }[] | null
}

export type FromThread =
  | { readonly type: 'ready' }
  | { readonly type: 'progress'; readonly value: number; readonly max: number; readonly also?: ProgressExtras }
  | { readonly type: 'preview'; readonly contentType: string; readonly bytes: Uint8Array }
  | { readonly type: 'log'; readonly text: string }
  | { readonly type: 'text'; readonly text: string }
  | ({ readonly type: 'reserve'; readonly requestId: number; readonly folder: 'output' | 'temp' } & NumberRequest)
  /** isSpent: something of the call still goes on in the thread, so that it must not be used again. */
  | { readonly type: 'done'; readonly result: WireResult; readonly isSpent?: boolean }
  | { readonly type: 'failed'; readonly failure: FailureText | 'interrupted'; readonly isSpent?: boolean }

// The result of a call on its way from a compute thread to the engine thread. File bytes move, they are not copied.

export function toWireResult({ outputs, report, expand }: CallResult): WireResult {
  return {
    outputs: toWire(outputs instanceof Blocker ? outputs : [...outputs]),
    report: report ?? null,
    expand: expand?.nodes.map((node) => ({ ...node, inputs: toWireRecord(node.inputs) })) ?? null,
  }
}

function fromWireResult({ outputs, report, expand }: WireResult, recognise: Recognise): CallResult {
  const read = fromWire(outputs, recognise)
  return {
    outputs: read instanceof Blocker ? read : (read as Value[]),
    ...(report !== null && { report }),
    ...(expand !== null && { expand: rebuild(expand, recognise) }),
  }
}

function rebuild(nodes: NonNullable<WireResult['expand']>, recognise: Recognise): GraphBuilder {
  const graph = new GraphBuilder('')
  for (const { id, classType, inputs } of nodes) graph.node(classType, fromWireRecord(inputs, recognise), id)
  return graph
}

/** The memory of a report's files, each once and only where a file owns all of it. */
export function transferable(report: MadeReport | null): ArrayBuffer[] {
  const buffers = new Set<ArrayBuffer>()
  for (const items of Object.values(report ?? {})) {
    for (const item of items) {
      if (item.kind === 'file' && item.bytes.byteLength === item.bytes.buffer.byteLength) buffers.add(item.bytes.buffer)
    }
  }
  return [...buffers]
}

// How calls on other threads fail, as errors of their nodes.

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
