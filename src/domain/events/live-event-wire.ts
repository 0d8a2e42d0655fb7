/**
 * A live event as JSON text, and beside it the bytes of a picture, so that a medium which carries bytes need not inflate them.
 * Reading trusts nothing: another process may speak a newer version of the language, and what cannot be understood is null.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import type { LiveEvent } from './live-event.ts'

interface EncodedEvent {
  readonly text: string
  /** null: the event has none. */
  readonly bytes: Uint8Array | null
}

/** Room for the longest text that a run tells at once, escaped; what is longer is not told to other processes. */
export const MAX_EVENT_TEXT_LENGTH = 512 * 1024

/** null: the event is too large to be told, or holds what has no text form. */
export function encodeLiveEvent(event: LiveEvent): EncodedEvent | null {
  const { bytes, ...rest } = event.type === 'preview' ? event : { ...event, bytes: null }
  const text = toText(rest)
  return text === null || text.length > MAX_EVENT_TEXT_LENGTH ? null : { text, bytes }
}

export function decodeLiveEvent({ text, bytes }: EncodedEvent): LiveEvent | null {
  if (text.length > MAX_EVENT_TEXT_LENGTH) return null
  const fields = readObject(text)
  if (fields === null) return null
  const { type } = fields
  if (typeof type !== 'string' || !Object.hasOwn(CHECKS, type)) return null
  const checks = CHECKS[type as LiveEvent['type']]
  if (!Object.entries(checks).every(([name, isRight]) => isRight(fields[name]))) return null
  if (type !== 'preview') return fields as unknown as LiveEvent
  return bytes === null ? null : ({ ...fields, bytes } as unknown as LiveEvent)
}

type Check = (value: JsonValue | undefined) => boolean

const isText: Check = (value) => typeof value === 'string'
const isNumber: Check = (value) => typeof value === 'number'
const isFlag: Check = (value) => typeof value === 'boolean'
const isTextOrNull: Check = (value) => value === null || typeof value === 'string'
const isMaybe =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)
const isListOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)

const isItem: Check = (item) => {
  if (!isJsonObject(item)) return false
  if (item.kind === 'value') return Object.hasOwn(item, 'value')
  const names = [item.filename, item.subfolder]
  return item.kind === 'file' && names.every(isText) && FOLDERS.has(item.folder) && isTextOrNull(item.contentType)
}

const FOLDERS: ReadonlySet<JsonValue | undefined> = new Set(['output', 'temp', 'input'])

const isFailure: Check = (value) =>
  isJsonObject(value) &&
  [value.code, value.message, value.exceptionType].every(isText) &&
  [value.nodeId, value.classType, value.traceback].every(isTextOrNull) &&
  [value.currentOutputs, value.executed].every(isMaybe(isListOf(isText))) &&
  isMaybe((inputs) => isJsonObject(inputs) && Object.values(inputs).every(Array.isArray))(value.currentInputs)

const NODE = { nodeId: isText, classType: isText, displayNodeId: isText, parentNodeId: isTextOrNull }

const CHECKS: Readonly<Record<LiveEvent['type'], Readonly<Record<string, Check>>>> = {
  started: { nodesTotal: isNumber },
  cached: { nodeIds: isListOf(isText) },
  node_started: NODE,
  node_progress: { ...NODE, value: isNumber, max: isNumber, isOwn: isMaybe(isFlag) },
  node_finished: NODE,
  preview: { ...NODE, contentType: isText, isResult: isMaybe(isFlag) },
  node_text: { ...NODE, text: isText },
  node_report: {
    ...NODE,
    cached: isFlag,
    report: (report) => isJsonObject(report) && Object.values(report).every(isListOf(isItem)),
  },
  node_blocked: { ...NODE, message: isText },
  log: { text: isText },
  succeeded: {},
  failed: { failure: isFailure },
  interrupted: {},
}

/** A node may report a step that is no number; clients are shown a nought. */
function toText(event: object): string | null {
  const { value, max } = event as { value?: unknown; max?: unknown }
  const isOdd = (part: unknown) => typeof part === 'number' && !Number.isFinite(part)
  const finite = {
    ...event,
    ...(isOdd(value) && { value: 0 }),
    ...(isOdd(max) && { max: 0 }),
  }
  try {
    return stringifyLosslessJson(finite as JsonObject)
  } catch {
    // A report may hold what has no text, such as a ring of objects.
    return null
  }
}

function readObject(text: string): JsonObject | null {
  try {
    const value = parseLosslessJson(text)
    return isJsonObject(value) ? value : null
  } catch {
    return null
  }
}
