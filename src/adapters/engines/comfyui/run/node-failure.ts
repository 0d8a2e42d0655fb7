/**
 * What went wrong in a node, as the server tells it, with one of our stable codes. Pure; every text is bounded and
 * free of credentials.
 */
import type { Graph } from '../../../../../engine/graph/graph.ts'
import type { EngineFailure } from '../../../../../engine/graph/run-event.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { keepHead, keepTail } from '../../../../../lib/text/cut-text.ts'
import { toText } from '../wire/socket-frames.ts'

export interface FailureBounds {
  readonly maxMessageBytes: number
  readonly maxTracebackBytes: number
  /** Replaces credentials of the run wherever they appear. */
  redact(text: string): string
}

export interface FailureContext extends FailureBounds {
  readonly graph: Graph
}

const NO_REASON = 'the engine ended the run with an error and did not say which'

/** `error`: the body of `execution_error`, or null when the server kept none. */
export function toFailure(error: JsonObject | null, { graph, ...bounds }: FailureContext): EngineFailure {
  const { maxMessageBytes, maxTracebackBytes, redact } = bounds
  const declared = new Set(Object.keys(graph.get(toText(error?.node_id) ?? '')?.inputs ?? {}))
  const exceptionType = (toText(error?.exception_type) ?? 'Exception').slice(0, 256)
  const message = (toText(error?.exception_message) ?? '').trim() || NO_REASON
  const traceback = joinLines(error?.traceback, 2 * maxTracebackBytes)
  return {
    code: toFailureCode(exceptionType, message, wordsOf(graph)),
    message: keepHead(redact(message).toWellFormed(), maxMessageBytes),
    nodeId: toText(error?.node_id),
    classType: toText(error?.node_type),
    // The tail is kept because the innermost frame is last.
    traceback: traceback === '' ? null : keepTail(redact(traceback).toWellFormed(), maxTracebackBytes),
    exceptionType,
    ...(error === null ? {} : readCircumstances(error, { declared, redact })),
  }
}

function* wordsOf(graph: Graph): Generator<string> {
  for (const { inputs } of graph.values()) {
    for (const value of Object.values(inputs)) if (typeof value === 'string') yield value
  }
}

// Tensors come as text, thousands of characters each.
const MAX_VALUE_LENGTH = 1_000
const MAX_VALUES = 100
const MAX_IDS = 10_000

interface CircumstanceRules {
  /** Inputs that the graph gives to the node. All others are hidden ones, and may be credentials. */
  readonly declared: ReadonlySet<string>
  redact(text: string): string
}

function readCircumstances(error: JsonObject, { declared, redact }: CircumstanceRules): Partial<EngineFailure> {
  const given = isJsonObject(error.current_inputs) ? error.current_inputs : {}
  const shorten = (value: JsonValue) => (typeof value === 'string' ? redact(value.slice(0, MAX_VALUE_LENGTH)) : value)
  const inputs = Object.entries(given).flatMap(([name, values]) =>
    declared.has(name) && Array.isArray(values) ? [[name, values.slice(0, MAX_VALUES).map(shorten)] as const] : [],
  )
  return {
    currentInputs: Object.fromEntries(inputs),
    currentOutputs: readIds(error.current_outputs),
    executed: readIds(error.executed),
  }
}

function readIds(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((id) => typeof id === 'string').slice(0, MAX_IDS) : []
}

/** The last lines of a traceback, as many as fit, so that a huge one is never joined whole. */
function joinLines(value: JsonValue | undefined, maxLength: number): string {
  if (typeof value === 'string') return value.slice(-maxLength)
  if (!Array.isArray(value)) return ''
  const lines: string[] = []
  let length = 0
  for (let at = value.length - 1; at >= 0 && length < maxLength; at--) {
    const line = value[at]
    if (typeof line !== 'string') continue
    lines.push(line.slice(-maxLength))
    length += line.length
  }
  return lines.reverse().join('')
}

/**
 * Whose fault it was that a node raised: the graph's, or that of the machine it ran on. A server tells only Python's exception and its
 * text, so the exception's type decides first which texts can mean what: a ValueError that quotes "No space left on device" is about
 * the caller's words. Pure.
 */
export type FailureCode =
  | 'node_execution_error'
  | 'out_of_memory'
  | 'cuda_fault'
  | 'machine_fault'
  | 'missing_weights'
  | 'missing_node_class'
  | 'invalid_workflow'
  | 'input_too_large'
  | 'stalled'

interface Rule {
  readonly code: FailureCode
  readonly type: RegExp
  readonly text: RegExp
}

const ANY_TEXT = /(?:)/
/** Of the operating system, by Python itself and by PyAV, which names its errors alike. */
const SYSTEM_TYPE = /(?:^|\.)(?:OSError|IOError|EnvironmentError|PermissionError|BlockingIOError|shutil\.Error)$/
/** What nodes and libraries wrap another error in. */
const WRAPPER_TYPE =
  /^(?:Exception|RuntimeError|SystemError)$|^torch\.|(?:^|\.)(?:AcceleratorError|SafetensorError|DeferredCudaCallError|HipError|CUDARuntimeError|CUDADriverError|XFormersError|TritonError)$/
const SYSTEM_OR_WRAPPER = new RegExp(`${SYSTEM_TYPE.source}|${WRAPPER_TYPE.source}`)
const IMPORT_TYPE = /(?:^|\.)(?:ImportError|ModuleNotFoundError)$/

/**
 * As Python writes them: EPERM, EIO, EACCES, ENODEV, ENFILE, EMFILE, ENOSPC, EROFS, ESTALE, EUCLEAN, ENOTCONN, EREMOTEIO, EDQUOT (with the
 * numbers of macOS for the last one), and Windows' own for the same.
 */
const SYSTEM_TEXT =
  /\[Errno (?:1|5|13|19|23|24|28|30|107|116|117|121|122)\] |\[Errno 69\] Disc quota|\[WinError (?:5|19|21|39|112|1117|1295|1450)\] /
/** The same with the system's own words, without which a number in a text that somebody composed may be anybody's. */
const WORDED_SYSTEM_TEXT =
  /\[Errno \d+\] (?:Operation not permitted|Input\/output error|Permission denied|No such device|Too many open files|No space left on device|Read-only file system|Transport endpoint is not connected|Stale (?:NFS )?file handle|Structure needs cleaning|Remote I\/O error|Dis[ck] quota exceeded)|\[WinError \d+\] (?:Access is denied|The media is write protected|The device is not ready|The disk is full|There is not enough space on the disk|The request could not be performed because of an I\/O device error|Insufficient system resources)/
/** What a path that the caller chose can bring about on a sound machine; the last ones only outside of the server's folders. */
const CHOSEN_PATH_TEXT = /\[Errno (?:1|13)\] |\[WinError 5\] |\(os error (?:1|13)\)/
const OUTER_PATH_TEXT = /\[Errno (?:5|19|30)\] |\[WinError (?:19|21)\] |\(os error (?:5|30)\)/
const OUTER_PATH = /^(?:[/\\~]|[a-z]:)|(?:^|[/\\])\.\.(?:[/\\]|$)/i
/** Libraries that are not Python's say it in other words. */
const STORAGE_TEXT =
  /\(os error (?:1|5|13|23|24|28|30|122)\)|PytorchStreamWriter failed writing|inline_container\.cc:\d+\] \. unexpected pos|database or disk is full|disk I\/O error|attempt to write a readonly database/
const LIBRARY_TEXT =
  /cannot open shared object file|version `(?:GLIBC|GLIBCXX|CXXABI)_[\d.]+' not found|undefined symbol: |DLL load failed|\[WinError (?:126|127|193|1114)\] |Failed to import [\w.]+ because of|wrong ELF class|invalid ELF header|Library not loaded: /
const DRIVER_TEXT =
  /no kernel image is available|CUDA driver version is insufficient|CUDA driver initialization failed|Found no NVIDIA driver|NVIDIA driver on your system is too old|No (?:CUDA|HIP|XPU|NPU) GPUs are available|no (?:CUDA|ROCm)-capable device|Unexpected error from cudaGetDeviceCount|Torch not compiled with CUDA|forward compatibility was attempted|invalid device function|system not yet initialized|all CUDA-capable devices are busy/i
/** After one of these the context of the process on the card is broken, and every later call fails as well. */
const CONTEXT_TEXT =
  /\b(?:CUDA|HIP|NCCL|MUSA) error\b|\bdevice-side assert|\billegal memory access|\bunspecified launch failure|CUBLAS_STATUS_(?!ALLOC_FAILED)\w+|CUDNN_STATUS_\w+|cuDNN error|rocBLAS error|MIOpen error|hipError\w+|uncorrectable ECC|(?:GPU|device) (?:is|was|has been) lost|DEVICE_LOST|CUDA_ERROR_(?!OUT_OF_MEMORY)\w+/i
const NO_MEMORY_TYPE = /OutOfMemory|MemoryError$/
const NO_MEMORY_TEXT =
  /\bout of memory\b|can't allocate memory|^Allocation on device|not enough memory: you tried to allocate|CUBLAS_STATUS_ALLOC_FAILED|CUDA_ERROR_OUT_OF_MEMORY|\[Errno 12\] |\[WinError (?:8|14|1455)\] /i
const ABSENT_TYPE = /FileNotFoundError|OSError|IOError/
const WEIGHTS_NAME = /[\w./\\-]+\.(?:safetensors|sft|ckpt|pt2?|pth|bin|pkl|gguf|onnx)\b/i
const MODEL_NOT_FOUND = /model in folder .* not found|could not find (?:a )?(?:model|checkpoint)/i

/** The first that fits counts. */
const RULES: readonly Rule[] = [
  { code: 'out_of_memory', type: NO_MEMORY_TYPE, text: ANY_TEXT },
  { code: 'out_of_memory', type: SYSTEM_OR_WRAPPER, text: NO_MEMORY_TEXT },
  { code: 'machine_fault', type: IMPORT_TYPE, text: ANY_TEXT },
  { code: 'machine_fault', type: SYSTEM_TYPE, text: SYSTEM_TEXT },
  { code: 'machine_fault', type: WRAPPER_TYPE, text: WORDED_SYSTEM_TEXT },
  { code: 'machine_fault', type: SYSTEM_OR_WRAPPER, text: LIBRARY_TEXT },
  { code: 'machine_fault', type: new RegExp(`${SYSTEM_OR_WRAPPER.source}|OperationalError$`), text: STORAGE_TEXT },
  // PyTorch without CUDA asserts that it has it.
  { code: 'machine_fault', type: new RegExp(`${WRAPPER_TYPE.source}|^AssertionError$`), text: DRIVER_TEXT },
  { code: 'cuda_fault', type: WRAPPER_TYPE, text: CONTEXT_TEXT },
  { code: 'cuda_fault', type: /(?:^|\.)AcceleratorError$/, text: ANY_TEXT },
  { code: 'missing_weights', type: ABSENT_TYPE, text: WEIGHTS_NAME },
  { code: 'missing_weights', type: ANY_TEXT, text: MODEL_NOT_FOUND },
]

/** The words that matter stand at the beginning; a text of megabytes is not searched. */
const MAX_SEARCHED = 16_384

/** `words`: what the caller wrote into the graph. Where the text repeats them, they say nothing about the machine. */
export function toFailureCode(exceptionType: string, text: string, words: Iterable<string> = []): FailureCode {
  const given = [...words]
  const beginning = text.slice(0, MAX_SEARCHED)
  const searched = withoutWords(beginning, given)
  const rule = RULES.find((each) => each.type.test(exceptionType) && isSaid(each.text, searched, given))
  if (rule?.code === 'machine_fault' && isOfChosenPath(beginning, given)) return 'node_execution_error'
  return rule?.code ?? 'node_execution_error'
}

/** Shorter ones are no sentence that could be taken for another's. */
const MIN_WORDS = 8

function withoutWords(text: string, words: readonly string[]): string {
  let rest = text
  for (const each of words) {
    if (each.length < MIN_WORDS || each.length > MAX_ESCAPED) continue
    for (const form of formsOf(each)) rest = rest.replaceAll(form, '')
  }
  return rest
}

/** As it is, and as Python's repr and JSON write it. None that is longer than what is searched can be in there as a whole. */
const MAX_ESCAPED = MAX_SEARCHED

function formsOf(words: string): Set<string> {
  const json = JSON.stringify(words).slice(1, -1)
  const repr = json.replaceAll('\\"', '"')
  return new Set([words, json, repr, repr.replaceAll("'", "\\'")])
}

/** A match that is a piece of what the caller wrote was quoted from there, cut off or not. */
function isSaid(rule: RegExp, text: string, words: readonly string[]): boolean {
  if (rule === ANY_TEXT) return true
  for (const [match] of text.matchAll(new RegExp(rule.source, `${rule.flags}g`))) {
    const piece = match.trim()
    if (!words.some((each) => each.includes(piece))) return true
  }
  return false
}

/** The system refused a path, and a word of the graph is in what it says: whether that is the path's fault another engine shows. */
function isOfChosenPath(text: string, words: readonly string[]): boolean {
  const isRefused = CHOSEN_PATH_TEXT.test(text)
  if (!isRefused && !OUTER_PATH_TEXT.test(text)) return false
  return words.some((each) => {
    const isOuter = OUTER_PATH.test(each)
    // A server resolves what leads out of a folder before it opens it.
    const path = isOuter ? each.replace(/^.*\.\.[/\\]|^~[/\\]/, '') : each
    const isWord = isOuter ? path.length > 1 : isRefused && path.length >= MIN_WORDS
    return isWord && path.length <= MAX_ESCAPED && [...formsOf(path)].some((form) => text.includes(form))
  })
}
