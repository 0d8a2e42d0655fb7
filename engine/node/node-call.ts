/**
 * One call of one node, the same on every thread: the node runs in its context, and what it returns
 * is checked before anything else uses it. The host supplies what differs between threads.
 */
import { type JsonObject, type JsonValue, NumberText, parseLosslessJson } from '../../lib/json/lossless-json.ts'
import { fromPythonNumber } from '../../lib/python/values.ts'
import { refuseLongText } from '../python/text-limit.ts'
import { elementCount, HEADER_BYTES, type ShareRows, Tensor } from '../tensor/tensor.ts'
import { Blocker, eachTensor, MAX_DEPTH, type Value, valueTypeName } from '../values/value.ts'
import type { EngineNode } from './define-node.ts'
import {
  type CallResult,
  GraphBuilder,
  type InputFile,
  type MadeReport,
  type NodeContext,
  type ProgressExtras,
  type ReadInputs,
} from './node-context.ts'
import { Interrupted, NodeError, refuseLongList, usedUpCpu } from './node-error.ts'

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

// How much plain values weigh, and how much of them one result may hold. Every part counts as often as it is met, because on its
// way to another thread or into a file a text that stands in a list a thousand times is there a thousand times. The walk ends as
// soon as the limit is reached, so a small value that repeats itself without end costs no more than a large one.

/** All outputs of one node together, tensors and files not counted: those have limits of their own. */
const MAX_RESULT_BYTES = 67_108_864

// A value with its entry in a list, roughly: a number takes less, an object more.
const PART_BYTES = 64
// A tensor without its elements: an object, its shape, and a view on shared memory in each thread that has seen it.
const TENSOR_BYTES = 512
const BYTES_PER_CHARACTER = 2

function refuseHeavyResult(bytes: number): void {
  if (bytes <= MAX_RESULT_BYTES) return
  throw new NodeError(
    'MemoryError',
    `the texts and lists of this result take more than ${MAX_RESULT_BYTES / 1_048_576} MiB. Use shorter texts or lists`,
  )
}

// Values are never changed once they have left their node, so each list and object is walked once.
const known = new WeakMap<object, number>()

/** In bytes. Throws NodeError for a text, a list or a whole that is larger than allowed. */
export function weighValue(value: Value, depth = 0): number {
  if (typeof value === 'string') {
    refuseLongText(value.length)
    return PART_BYTES + BYTES_PER_CHARACTER * value.length
  }
  if (typeof value !== 'object' || value === null) return PART_BYTES
  if (value instanceof Tensor) return TENSOR_BYTES
  if (value instanceof NumberText || value instanceof Blocker) return PART_BYTES
  const before = known.get(value)
  if (before !== undefined) return before
  if (depth > MAX_DEPTH) throw new TypeError(`a value nested deeper than ${MAX_DEPTH} levels cannot be passed on`)
  const bytes = Array.isArray(value) ? weighList(value, depth) : weighMembers(value, depth)
  known.set(value, bytes)
  return bytes
}

function weighList(list: readonly Value[], depth: number): number {
  refuseLongList(list.length)
  let bytes = PART_BYTES
  for (const part of list) {
    bytes += weighValue(part, depth + 1)
    refuseHeavyResult(bytes)
  }
  return bytes
}

function weighMembers(members: Readonly<Record<string, Value>>, depth: number): number {
  let bytes = PART_BYTES
  for (const [key, part] of Object.entries(members)) {
    bytes += BYTES_PER_CHARACTER * key.length + weighValue(part, depth + 1)
    refuseHeavyResult(bytes)
  }
  return bytes
}

export function weighValues(values: readonly Value[]): number {
  let bytes = 0
  for (const value of values) {
    bytes += weighValue(value)
    refuseHeavyResult(bytes)
  }
  return bytes
}

/** The plain values of a report; its files are counted where they lie. */
function weighReport(report: MadeReport): number {
  let bytes = 0
  for (const items of Object.values(report)) {
    for (const item of items) bytes += item.kind === 'value' ? weighValue(item.value as Value) : PART_BYTES
    refuseHeavyResult(bytes)
  }
  return bytes
}

/** What a call made, outputs and report. */
export function weighResult({ outputs, report }: CallResult): number {
  const outputBytes = outputs instanceof Blocker ? 0 : weighValues(outputs)
  return outputBytes + (report === undefined ? 0 : weighReport(report))
}

/** The same for what has crossed threads, where classes are gone: each side must come to the same sum. */
export function weighJson(value: JsonValue): number {
  if (typeof value === 'string') return PART_BYTES + BYTES_PER_CHARACTER * value.length
  if (typeof value !== 'object' || value === null) return PART_BYTES
  let bytes = PART_BYTES
  for (const part of Array.isArray(value) ? value : Object.values(value)) bytes += weighJson(part as JsonValue)
  return bytes
}

// How much plain values (texts, lists, numbers) all runs together, and each of them, may hold at a time. They lie in the heap of
// the engine thread, which all runs share: the run that would fill it fails, and the thread lives on. What tensors and files
// take is counted by the memory ledger.

export interface ValueBudget {
  open(): RunValues
}

/** What one run holds. */
export interface RunValues {
  /** Throws NodeError beyond the limits. */
  take(bytes: number): void
  give(bytes: number): void
  /** The run is over: everything is given back. */
  close(): void
}

export interface ValueLimits {
  readonly totalBytes: number
  readonly runBytes: number
}

// Every run may hold this much, even when others have taken everything else; an ordinary job never needs more.
const GUARANTEED_BYTES = 4_194_304

export function createValueBudget({ totalBytes, runBytes }: ValueLimits): ValueBudget {
  let heldByAll = 0

  function open(): RunValues {
    let held = 0
    let isClosed = false
    return {
      take(bytes) {
        if (isClosed) return
        const isCrowded = heldByAll + bytes > totalBytes && held + bytes > GUARANTEED_BYTES
        if (isCrowded || held + bytes > runBytes) throw tooMuch(isCrowded ? totalBytes : runBytes, isCrowded)
        held += bytes
        heldByAll += bytes
      },
      give(bytes) {
        if (isClosed) return
        held -= bytes
        heldByAll -= bytes
      },
      close() {
        isClosed = true
        heldByAll -= held
        held = 0
      },
    }
  }
  return { open }
}

function tooMuch(limit: number, isCrowded: boolean): NodeError {
  const whose = isCrowded ? 'all running jobs together' : 'a running job'
  return new NodeError(
    'MemoryError',
    `${whose} may hold ${Math.ceil(limit / 1_048_576)} MiB of texts and lists. Use shorter ones, or fewer at a time`,
  )
}
