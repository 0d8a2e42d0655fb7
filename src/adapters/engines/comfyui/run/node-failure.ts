/**
 * What went wrong in a node, as one of our stable codes. Servers only tell Python's exception and its text, so the code is
 * recognised by the messages of PyTorch, CUDA and ComfyUI. Pure; every text is bounded and free of credentials.
 */

import type { Graph } from '../../../../../engine/graph/graph.ts'
import type { EngineFailure } from '../../../../../engine/graph/run-event.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { keepHead, keepTail } from '../../../../../lib/text/cut-text.ts'
import { toText } from '../wire/socket-frames.ts'

export type FailureCode =
  | 'node_execution_error'
  | 'out_of_memory'
  | 'cuda_fault'
  | 'missing_weights'
  | 'missing_node_class'
  | 'invalid_workflow'
  | 'input_too_large'
  | 'stalled'

const OUT_OF_MEMORY_TYPE = /OutOfMemory|^MemoryError$/
const OUT_OF_MEMORY_TEXT =
  /\bout of memory\b|can't allocate memory|^Allocation on device|not enough memory: you tried to allocate|CUBLAS_STATUS_ALLOC_FAILED/i
// After one of these the CUDA context of the process is broken, and every later call fails as well.
const CUDA_FAULT =
  /\b(?:CUDA|HIP) error\b|device-side assert|illegal memory access|unspecified launch failure|CUBLAS_STATUS_(?!ALLOC_FAILED)\w+|CUDNN_STATUS_\w+|cuDNN error|uncorrectable ECC|GPU is lost|AcceleratorError/i
const NOT_FOUND_TYPE = /FileNotFoundError|OSError|IOError/
const WEIGHTS_NAME = /[\w./\\-]+\.(?:safetensors|sft|ckpt|pt2?|pth|bin|pkl|gguf|onnx)\b/i
const MODEL_NOT_FOUND = /model in folder .* not found|could not find (?:a )?(?:model|checkpoint)/i

export function classify(exceptionType: string, message: string): FailureCode {
  if (OUT_OF_MEMORY_TYPE.test(exceptionType) || OUT_OF_MEMORY_TEXT.test(message)) return 'out_of_memory'
  if (CUDA_FAULT.test(message) || CUDA_FAULT.test(exceptionType)) return 'cuda_fault'
  const isAbsent = NOT_FOUND_TYPE.test(exceptionType) && WEIGHTS_NAME.test(message)
  return isAbsent || MODEL_NOT_FOUND.test(message) ? 'missing_weights' : 'node_execution_error'
}

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
    code: classify(exceptionType, message),
    message: keepHead(redact(message).toWellFormed(), maxMessageBytes),
    nodeId: toText(error?.node_id),
    classType: toText(error?.node_type),
    // The tail is kept because the innermost frame is last.
    traceback: traceback === '' ? null : keepTail(redact(traceback).toWellFormed(), maxTracebackBytes),
    exceptionType,
    ...(error === null ? {} : readCircumstances(error, { declared, redact })),
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
