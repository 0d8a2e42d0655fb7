import { type JsonValue, stringifyLosslessJson } from '../../lib/lossless-json.ts'

/** The JSON text of a value that a node reported. What cannot be written as JSON (a cycle) is shown rather than dropped. */
export function toJsonText(value: unknown): string {
  try {
    return stringifyLosslessJson(value as JsonValue) ?? 'null'
  } catch {
    return JSON.stringify(String(value))
  }
}
