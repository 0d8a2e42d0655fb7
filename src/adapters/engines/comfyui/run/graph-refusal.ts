/** The answer with which a server refuses a graph, as a failure of the job. Pure. */
import type { EngineFailure } from '../../../../../engine/graph/run-event.ts'
import type { Finding, GraphRefusal } from '../../../../../engine/graph/validate/validation-result.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { keepHead } from '../../../../../lib/text/cut-text.ts'
import { toText } from '../wire/socket-frames.ts'
import type { FailureBounds, FailureCode } from './node-failure.ts'

export interface Refusal {
  readonly failure: EngineFailure
  /** It may be about files that the server no longer has: perhaps its input folder was emptied. */
  readonly isAboutFiles: boolean
  /** Values that are not among the choices of their input. */
  readonly unknownChoices: readonly string[]
}

interface NodeFault {
  readonly nodeId: string
  readonly classType: string | null
  readonly type: string
  readonly message: string
  readonly details: string
  readonly received: JsonValue
}

const WEIGHTS = /\.(?:safetensors|sft|ckpt|pt|pt2|pth|bin|pkl|gguf|onnx)$/i
const MAX_SHOWN_FAULTS = 8
const UNKNOWN_CLASS: ReadonlySet<string> = new Set(['missing_node_type', 'invalid_prompt'])

/** `restore`: turns names that were rewritten for the server back into those of the caller. */
export function toRefusal(
  told: JsonValue,
  bounds: Pick<FailureBounds, 'maxMessageBytes' | 'redact'>,
  restore: (text: string) => string = (text) => text,
): Refusal {
  const body = showAs(told, (text) => restore(bounds.redact(text)))
  const error = isJsonObject(body) && isJsonObject(body.error) ? body.error : {}
  const faults = readFaults(body)
  const [first] = faults
  const info = isJsonObject(error.extra_info) ? error.extra_info : {}
  const message = faults.length === 0 ? describe(error) : faults.slice(0, MAX_SHOWN_FAULTS).map(toLine).join('; ')
  return {
    isAboutFiles: faults.some(({ type }) => type === 'custom_validation_failed'),
    unknownChoices: readFaults(told).flatMap(({ type, received }) =>
      type === 'value_not_in_list' && typeof received === 'string' ? [received] : [],
    ),
    failure: {
      code: toCode(toText(error.type) ?? '', faults),
      message: keepHead(`the engine refused the workflow: ${message.toWellFormed()}`, bounds.maxMessageBytes),
      nodeId: first?.nodeId ?? toText(info.node_id),
      classType: first?.classType ?? toText(info.class_type),
      traceback: null,
      exceptionType: 'ValidationError',
      refusal: { error: toFinding(error), nodeErrors: readNodeErrors(body) },
    },
  }
}

function toCode(type: string, faults: readonly NodeFault[]): FailureCode {
  if (UNKNOWN_CLASS.has(type)) return 'missing_node_class'
  const isAbsent = ({ type: fault, received }: NodeFault) =>
    fault === 'value_not_in_list' && typeof received === 'string' && WEIGHTS.test(received)
  return faults.some(isAbsent) ? 'missing_weights' : 'invalid_workflow'
}

function describe(error: JsonObject): string {
  const parts = [toText(error.message), toText(error.details)].filter((part) => part !== null && part !== '')
  return parts.length === 0 ? 'it did not say why' : parts.join(' - ')
}

function toLine({ nodeId, classType, message, details }: NodeFault): string {
  return `node ${nodeId}${classType === null ? '' : ` (${classType})`}: ${message}${details === '' ? '' : `: ${details}`}`
}

function readFaults(body: JsonValue): NodeFault[] {
  const nodeErrors = isJsonObject(body) && isJsonObject(body.node_errors) ? body.node_errors : {}
  return Object.entries(nodeErrors).flatMap(([nodeId, node]) => {
    if (!isJsonObject(node) || !Array.isArray(node.errors)) return []
    const classType = toText(node.class_type)
    return node.errors.filter(isJsonObject).map((fault) => ({
      nodeId,
      classType,
      type: toText(fault.type) ?? '',
      message: toText(fault.message) ?? '',
      details: toText(fault.details) ?? '',
      received: isJsonObject(fault.extra_info) ? (fault.extra_info.received_value ?? null) : null,
    }))
  })
}

function readNodeErrors(body: JsonValue): GraphRefusal['nodeErrors'] {
  const told = isJsonObject(body) && isJsonObject(body.node_errors) ? body.node_errors : {}
  const nodes = Object.entries(told).flatMap(([nodeId, node]) => {
    if (!isJsonObject(node)) return []
    const { errors, dependent_outputs: outputs, class_type: classType } = node
    return [
      [
        nodeId,
        {
          errors: (Array.isArray(errors) ? errors : []).filter(isJsonObject).map(toFinding),
          dependent_outputs: (Array.isArray(outputs) ? outputs : []).filter((id) => typeof id === 'string'),
          class_type: toText(classType) ?? '',
        },
      ] as const,
    ]
  })
  return Object.fromEntries(nodes)
}

/** Without tracebacks, which show the server's folders. */
function toFinding(told: JsonObject): Finding {
  const info = isJsonObject(told.extra_info) ? told.extra_info : {}
  return {
    type: toText(told.type) ?? '',
    message: toText(told.message) ?? '',
    details: toText(told.details) ?? '',
    extra_info: 'traceback' in info ? { ...info, traceback: [] } : info,
  }
}

/** The value with every text in it passed through `show`. */
function showAs(value: JsonValue, show: (text: string) => string): JsonValue {
  if (typeof value === 'string') return show(value)
  if (Array.isArray(value)) return value.map((item) => showAs(item, show))
  if (!isJsonObject(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, showAs(item, show)]))
}

/** A server may accept a graph without some of its outputs: then it lists what is wrong with those. */
export function hasNodeErrors(body: JsonValue): boolean {
  return isJsonObject(body) && isJsonObject(body.node_errors) && Object.keys(body.node_errors).length > 0
}
