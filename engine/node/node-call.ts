/**
 * One call of one node, the same on every thread: the node runs in its context, and what it returns
 * is checked before anything else uses it. The host supplies what differs between threads.
 */
import { type JsonObject, type JsonValue, parseLosslessJson } from '../../lib/json/lossless-json.ts'
import { fromPythonNumber } from '../../lib/python/values.ts'
import { elementCount, HEADER_BYTES, type ShareRows, Tensor } from '../tensor/tensor.ts'
import { Blocker, eachTensor, type Value, valueTypeName } from '../values/value.ts'
import { weighResult } from '../values/value-weight.ts'
import type { EngineNode } from './define-node.ts'
import {
  type CallResult,
  GraphBuilder,
  type InputFile,
  type NodeContext,
  type ProgressExtras,
  type ReadInputs,
} from './node-context.ts'
import { Interrupted, NodeError, usedUpCpu } from './node-error.ts'

/** What a call needs to know beside its inputs; plain data that crosses threads. */
export interface CallSurroundings {
  readonly nodeId: string
  readonly callIndex: number
  readonly files: Readonly<Record<string, InputFile>>
  /** JSON texts, present only for classes that declare the hidden input. */
  readonly promptText: string | null
  readonly extraPngInfoText: string | null
  readonly instanceLetters: string
  readonly maxImagePixels: number
  readonly nowMs: number
}

export interface CallHost {
  isCancelled(): boolean
  progress(value: number, max: number, also?: ProgressExtras): void
  preview(contentType: string, bytes: Uint8Array): void
  log(text: string): void
  text(text: string): void
  allocate(bytes: number): SharedArrayBuffer
  /** Absent on threads that have no helpers. */
  readonly shareRows?: ShareRows
  reserve: NodeContext['reserve']
  reserveNumbers(folder: 'output' | 'temp', subfolder: string, prefix: string, count: number): Promise<number>
  readonly runModel: NodeContext['runModel']
}

// ComfyUI's largest side to the fourth is far above this; what is larger than 2^40 elements is a mistake, not an image.
const MAX_ELEMENTS = 2 ** 40

export function allocateTensor(host: Pick<CallHost, 'allocate'>, shape: readonly number[]): Tensor {
  const count = elementCount(shape)
  if (!shape.every((side) => Number.isInteger(side) && side >= 0) || count > MAX_ELEMENTS) {
    throw new NodeError('RuntimeError', `a tensor of [${shape.join(', ')}] cannot be made`)
  }
  const bytes = count * Float32Array.BYTES_PER_ELEMENT
  return new Tensor([...shape], new Float32Array(host.allocate(bytes), HEADER_BYTES, count))
}

export function findFile(files: Readonly<Record<string, InputFile>>, name: string): InputFile | null {
  return Object.hasOwn(files, name) ? files[name] : null
}

/** Names that lie directly in the folder. */
export function namesInFolder(files: Readonly<Record<string, InputFile>>, folder: string): readonly string[] {
  const start = `${folder}/`
  return Object.keys(files).filter((name) => name.startsWith(start) && !name.includes('/', start.length))
}

export function toFiles(files: Readonly<Record<string, InputFile>>): NodeContext['files'] {
  return { find: (name) => findFile(files, name), list: (folder) => namesInFolder(files, folder) }
}

// Asking the system for the time of a thread takes longer than many a step between two checkpoints.
const CPU_LOOK_MS = 25

/** Throws once the call has used its processor time, on a busy machine as on a quiet one. */
function watchCpu({ classType, cpuLimitMs }: EngineNode): () => void {
  if (cpuLimitMs === undefined) return () => {}
  const start = process.threadCpuUsage()
  let lookAt = performance.now() + CPU_LOOK_MS
  return () => {
    const now = performance.now()
    if (now < lookAt) return
    lookAt = now + CPU_LOOK_MS
    const { user, system } = process.threadCpuUsage(start)
    if ((user + system) / 1000 > cpuLimitMs) throw usedUpCpu(classType, cpuLimitMs)
  }
}

function createContext(node: EngineNode, call: CallSurroundings, host: CallHost): NodeContext {
  let graphs = 0
  const mustHaveTime = watchCpu(node)
  const checkpoint = () => {
    if (host.isCancelled()) throw new Interrupted()
    mustHaveTime()
  }
  return {
    nodeId: call.nodeId,
    checkpoint,
    progress(value, max, also) {
      checkpoint()
      host.progress(Math.min(value, max), max, also)
    },
    preview: host.preview,
    log: host.log,
    text: host.text,
    allocate: (shape) => allocateTensor(host, shape),
    ...(host.shareRows !== undefined && { shareRows: host.shareRows }),
    reserve: host.reserve,
    files: toFiles(call.files),
    reserveNumbers: host.reserveNumbers,
    runModel: host.runModel,
    hidden: {
      prompt: () => parseLosslessJson(call.promptText ?? '{}') as JsonObject,
      extraPngInfo: (): JsonValue => parseLosslessJson(call.extraPngInfoText ?? 'null'),
    },
    instanceLetters: call.instanceLetters,
    maxImagePixels: call.maxImagePixels,
    now: new Date(call.nowMs),
    newGraph: () => new GraphBuilder(`${call.nodeId}.${call.callIndex}.${graphs++}.`),
  }
}

/** Declared FLOAT outputs are floats however the node computed them: 4 becomes 4.0. */
function toOutput(type: unknown, value: Value): Value {
  if (type !== 'FLOAT') return value
  if (Array.isArray(value)) return value.map((part) => toOutput(type, part))
  return typeof value === 'number' && Number.isInteger(value) ? fromPythonNumber(value) : value
}

function checkResult(node: EngineNode, result: CallResult): CallResult {
  if (typeof result !== 'object' || result === null) throw new NodeError('TypeError', 'the node returned no result')
  const { outputs } = result
  const types = node.definition.output
  if (outputs instanceof Blocker) return result
  if (!Array.isArray(outputs) || outputs.length !== types.length) {
    throw new NodeError('TypeError', `the node must return ${types.length} outputs`)
  }
  // Weighed first: that bounds every later walk over the result.
  weighResult(result)
  for (const value of outputs) eachTensor(value, () => {})
  return { ...result, outputs: outputs.map((value, slot) => toOutput(types[slot], value)) }
}

/** Answers at once when the node does; throws, or rejects, with whatever the node threw. */
export function performCall(
  node: EngineNode,
  inputs: ReadInputs,
  { call, host }: { readonly call: CallSurroundings; readonly host: CallHost },
): CallResult | Promise<CallResult> {
  if (host.isCancelled()) throw new Interrupted()
  const result = node.run(inputs, createContext(node, call, host))
  return result instanceof Promise ? result.then((late) => checkResult(node, late)) : checkResult(node, result)
}

/**
 * Raw values as a node's `run` expects them, each read through its declared kind. Inputs of dynamic groups have no kind of
 * their own here; they are handed over as they are.
 */
export function readInputs(node: EngineNode, inputs: Readonly<Record<string, Value>>): ReadInputs {
  const isList = node.definition.is_input_list
  const read: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(inputs)) {
    const kind = Object.hasOwn(node.inputKinds, name) ? node.inputKinds[name] : null
    if (kind === null) read[name] = value
    else read[name] = isList ? asList(value, name).map((part) => kind.read(part, name)) : kind.read(value, name)
  }
  return read
}

function asList(value: Value, name: string): readonly Value[] {
  if (!Array.isArray(value)) throw new NodeError('TypeError', `${name}: expected a list, got '${valueTypeName(value)}'`)
  return value
}
