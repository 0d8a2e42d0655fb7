/**
 * JSON in which numbers survive unchanged. A seed goes up to 2^64-1 and a graph distinguishes `1` from `1.0`, so a workflow
 * must travel from the request to the engine and back to the reader without passing through a double.
 * A number becomes a `number` when its text is exactly what JavaScript would print, a `bigint` when it is a larger integer,
 * and otherwise a `NumberText` that remembers how it was written.
 */
import { readJson } from './read-json.ts'

export class NumberText {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
  get value(): number {
    return Number(this.text)
  }
}

export type JsonValue = null | boolean | number | bigint | string | NumberText | JsonValue[] | JsonObject
export type JsonObject = { [key: string]: JsonValue }

type RawJsonTools = {
  rawJSON(text: string): unknown
}
const raw = JSON as unknown as RawJsonTools

// Texts that may hold a number which a plain parse would change: many digits, before and behind the point together, a trailing
// zero behind it, so many leading ones that JavaScript prints an exponent, an exponent, or minus zero. Only where a number
// can begin: ids and hashes inside of strings look like all of these.
const MAY_HOLD_RARE_NUMBER =
  /(?:^|[\s:,[])(?:-0(?!\.)|-?0\.0{6}|-?(?=\d+\.)[\d.]{17}|-?\d+(?:\.\d*0(?!\d)|(?:\.\d+)?[eE]|(?<=\d{16})))/
const INTEGER = /^-?\d+$/

/** What a number in a text becomes. */
export function keepNumber(source: string): number | bigint | NumberText {
  const value = Number(source)
  if (String(value) === source) return value
  return INTEGER.test(source) && source !== '-0' ? BigInt(source) : new NumberText(source)
}

/** Throws SyntaxError like JSON.parse, and RangeError when the nesting is deeper than the stack. */
export function parseLosslessJson(text: string): JsonValue {
  const read = MAY_HOLD_RARE_NUMBER.test(text) ? readJson(text, keepNumber) : null
  // The text is malformed; JSON.parse throws with the better message.
  return read === null ? (JSON.parse(text) as JsonValue) : read.value
}

function toRaw(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return raw.rawJSON(value.toString())
  return value instanceof NumberText ? raw.rawJSON(value.text) : value
}

export function stringifyLosslessJson(value: JsonValue): string {
  return JSON.stringify(value, toRaw)
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof NumberText)
}
