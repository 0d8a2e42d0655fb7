/**
 * What went wrong in a node, as the server tells it, with one of our stable codes (failure-code.ts). Pure; every text is bounded and
 * free of credentials.
 */

import type { Graph } from '../../../../../engine/graph/graph.ts'
import type { EngineFailure } from '../../../../../engine/graph/run-event.ts'
import { isJsonObject, type JsonObject, type JsonValue } from '../../../../../lib/json/lossless-json.ts'
import { keepHead, keepTail } from '../../../../../lib/text/cut-text.ts'
import { toText } from '../wire/socket-frames.ts'
import { toFailureCode } from './failure-code.ts'

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
