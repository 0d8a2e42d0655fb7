/** Writes a large value as JSON text in steps, losslessly like `stringifyLosslessJson`, and never more of it at once than a step. */
import { type JsonValue, NumberText } from './lossless-json.ts'
import type { Work } from './turns.ts'

interface Frame {
  /** What stands before each value: '' in a list, otherwise the names of the members. */
  readonly names: readonly string[] | null
  readonly values: readonly JsonValue[]
  next: number
}

const STEP_VALUES = 2000
const STEP_LENGTH = 262_144

export function* writeJsonSteps(value: JsonValue): Work<string> {
  // Strings that grow piece by piece are joined when somebody reads them: small pieces are joined here, the rest then.
  let text = ''
  let piece = ''
  let sinceYield = 0
  const stack: Frame[] = []
  let current: JsonValue = value
  for (;;) {
    if (typeof current === 'string' && current.length > STEP_LENGTH) {
      text += piece
      piece = ''
      text += yield* writeLongString(current)
    } else if (isContainer(current)) {
      const frame = openFrame(current)
      piece += frame.names === null ? '[' : '{'
      stack.push(frame)
    } else piece += writeScalar(current)
    let frame = stack.at(-1)
    while (frame !== undefined && frame.next === frame.values.length) {
      piece += frame.names === null ? ']' : '}'
      stack.pop()
      frame = stack.at(-1)
    }
    if (frame === undefined) return text + piece
    if (frame.next > 0) piece += ','
    if (frame.names !== null) piece += `${JSON.stringify(frame.names[frame.next])}:`
    current = frame.values[frame.next]
    frame.next++
    sinceYield++
    if (sinceYield < STEP_VALUES && piece.length < STEP_LENGTH) continue
    text += piece
    piece = ''
    sinceYield = 0
    yield
  }
}

function isContainer(value: JsonValue): value is JsonValue[] | { [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !(value instanceof NumberText)
}

/** Like JSON.stringify: a member without a value is none. */
function openFrame(container: JsonValue[] | { [key: string]: JsonValue }): Frame {
  if (Array.isArray(container)) return { names: null, values: container, next: 0 }
  const names = Object.keys(container)
  const values = Object.values(container)
  if (!values.includes(undefined as unknown as JsonValue)) return { names, values, next: 0 }
  return openFrame(Object.fromEntries(Object.entries(container).filter(([, value]) => value !== undefined)))
}

function writeScalar(value: JsonValue | undefined): string {
  if (value === undefined) return 'null'
  if (typeof value === 'bigint') return value.toString()
  return value instanceof NumberText ? value.text : JSON.stringify(value)
}

function* writeLongString(string: string): Work<string> {
  let text = '"'
  for (let from = 0; from < string.length; ) {
    let end = Math.min(from + STEP_LENGTH, string.length)
    // Half a character would be escaped.
    if (end < string.length && isHighSurrogate(string.charCodeAt(end - 1))) end++
    text += JSON.stringify(string.slice(from, end)).slice(1, -1)
    from = end
    yield
  }
  return `${text}"`
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit < 0xdc00
}
