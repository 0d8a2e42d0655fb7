import { type JsonValue, stringifyLosslessJson } from '../../../../../lib/json/lossless-json.ts'

/** The first characters of a text, as a copy: a slice would keep the whole text in memory. */
export function copyHead(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : Buffer.from(text.slice(0, maxLength), 'utf16le').toString('utf16le')
}

/** The JSON text of a value that a node reported; of one that cannot be written as JSON (a cycle), its string form. */
export function toJsonText(value: unknown): string {
  try {
    return stringifyLosslessJson(value as JsonValue) ?? 'null'
  } catch {
    return JSON.stringify(String(value))
  }
}
