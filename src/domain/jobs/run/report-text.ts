import { type JsonValue, stringifyLosslessJson } from '../../../../lib/json/lossless-json.ts'

/** The first characters of a text, as a text of its own: a mere slice would keep the whole in memory for as long as it lives. */
export function copyHead(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : Buffer.from(text.slice(0, maxLength), 'utf16le').toString('utf16le')
}

/** The JSON text of a value that a node reported. What cannot be written as JSON (a cycle) is shown rather than dropped. */
export function toJsonText(value: unknown): string {
  try {
    return stringifyLosslessJson(value as JsonValue) ?? 'null'
  } catch {
    return JSON.stringify(String(value))
  }
}
