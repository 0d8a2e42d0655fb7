/** Writes a large value as JSON text in steps, losslessly like `stringifyLosslessJson`. */

import type { Work } from '../waiting/turns.ts'
import { type JsonValue, NumberText } from './lossless-json.ts'

interface Frame {
  /** What is written before each value: '' in a list, the member's name in an object. */
  readonly names: readonly string[] | null
  readonly values: readonly JsonValue[]
  next: number
}

const STEP_VALUES = 2000
const STEP_LENGTH = 262_144

export function* writeJsonSteps(value: JsonValue): Work<string> {
  const writer = new StepWriter()
  let sinceYield = 0
  for (let current: JsonValue | undefined = value; ; current = writer.next()) {
    if (typeof current === 'string' && current.length > STEP_LENGTH) writer.add(yield* writeLongString(current))
    else writer.write(current)
    if (writer.isDone()) return writer.text()
    sinceYield++
    if (sinceYield < STEP_VALUES && writer.length < STEP_LENGTH) continue
    sinceYield = 0
    writer.flush()
    yield
  }
}

/**
 * Collects the parts of a step and joins them at its end. The runtime keeps a string that grows by small additions as a tree,
 * and flattens the whole tree at once when it is first read, which would take too long.
 */
class StepWriter {
  /** The length of what was added since the last flush. */
  length = 0
  readonly #stack: Frame[] = []
  #text = ''
  #parts: string[] = []

  add(part: string): void {
    this.#parts.push(part)
    this.length += part.length
  }

  /** Writes a scalar or the beginning of a container, and then closes the containers that end here. */
  write(value: JsonValue | undefined): void {
    if (value !== undefined && isContainer(value)) {
      const frame = openFrame(value)
      this.add(frame.names === null ? '[' : '{')
      this.#stack.push(frame)
    } else this.add(writeScalar(value))
  }

  isDone(): boolean {
    let frame = this.#stack.at(-1)
    while (frame !== undefined && frame.next === frame.values.length) {
      this.add(frame.names === null ? ']' : '}')
      this.#stack.pop()
      frame = this.#stack.at(-1)
    }
    return frame === undefined
  }

  next(): JsonValue | undefined {
    const frame = this.#stack[this.#stack.length - 1]
    const comma = frame.next > 0 ? ',' : ''
    this.add(frame.names === null ? comma : `${comma}${JSON.stringify(frame.names[frame.next])}:`)
    return frame.values[frame.next++]
  }

  flush(): void {
    this.#text += this.#parts.join('')
    this.#parts = []
    this.length = 0
  }

  text(): string {
    this.flush()
    return this.#text
  }
}

function isContainer(value: JsonValue): value is JsonValue[] | { [key: string]: JsonValue } {
  return typeof value === 'object' && value !== null && !(value instanceof NumberText)
}

/** Like JSON.stringify, leaves out members whose value is undefined. */
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
    // A lone surrogate would be escaped, so a cut must not split a pair.
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
