/**
 * Python's `json.loads` and `json.dumps` on Python's values. Differs from JSON.parse where Python does: ints of any size,
 * `1.0` stays a float, NaN and Infinity are read, and objects keep the order of their keys.
 */

import { dumpPythonNumber, readPythonInt } from '../../lib/python/values.ts'
import { NodeError } from '../node/node-error.ts'
import { inPython, isPyList, type PyDict, type PyNumber, type PyValue, pyTypeName } from './python-value.ts'

// CPython gives up at about a thousand levels.
const MAX_DEPTH = 900

const SPACE = /[ \t\n\r]*/y
const NUMBER = /(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?/y
const TEXT_PART = /[^"\\\p{Cc}]*(?:[\x7f-\x9f][^"\\\p{Cc}]*)*/uy
const WORDS: ReadonlyMap<string, PyValue> = new Map<string, PyValue>([
  ['null', null],
  ['true', true],
  ['false', false],
  ['NaN', Number.NaN],
  ['Infinity', Number.POSITIVE_INFINITY],
  ['-Infinity', Number.NEGATIVE_INFINITY],
])
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])
const FOUR_HEX = /^[0-9a-fA-F]{4}$/

/** The text is no JSON: what Python reports as JSONDecodeError. */
class NotJson extends Error {}

class JsonReader {
  readonly #text: string
  #at = 0

  constructor(text: string) {
    this.#text = text
  }

  readDocument(): PyValue {
    this.#skipSpace()
    const value = this.#readValue(0)
    this.#skipSpace()
    if (this.#at !== this.#text.length) throw new NotJson()
    return value
  }

  #skipSpace(): void {
    SPACE.lastIndex = this.#at
    SPACE.test(this.#text)
    this.#at = SPACE.lastIndex
  }

  #take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false
    this.#at += 1
    return true
  }

  #readValue(depth: number): PyValue {
    if (depth > MAX_DEPTH) throw new NodeError('RecursionError', 'maximum recursion depth exceeded')
    if (this.#take('"')) return this.#readText()
    if (this.#take('{')) return this.#readObject(depth)
    if (this.#take('[')) return this.#readArray(depth)
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue
      this.#at += word.length
      return value
    }
    return this.#readNumber()
  }

  #readNumber(): PyNumber {
    NUMBER.lastIndex = this.#at
    const match = NUMBER.exec(this.#text)
    if (match === null) throw new NotJson()
    this.#at = NUMBER.lastIndex
    const isInt = match[2] === undefined && match[3] === undefined
    return isInt ? inPython(() => readPythonInt(match[1])) : Number(match[0])
  }

  #readText(): string {
    const parts: string[] = []
    for (;;) {
      TEXT_PART.lastIndex = this.#at
      parts.push(TEXT_PART.exec(this.#text)?.[0] ?? '')
      this.#at = TEXT_PART.lastIndex
      if (this.#take('"')) return parts.join('')
      if (!this.#take('\\')) throw new NotJson()
      parts.push(this.#readEscape())
    }
  }

  #readEscape(): string {
    const letter = this.#text[this.#at]
    this.#at += 1
    if (letter !== 'u') {
      const plain = ESCAPES.get(letter)
      if (plain === undefined) throw new NotJson()
      return plain
    }
    const digits = this.#text.slice(this.#at, this.#at + 4)
    if (!FOUR_HEX.test(digits)) throw new NotJson()
    this.#at += 4
    return String.fromCharCode(Number.parseInt(digits, 16))
  }

  #readArray(depth: number): PyValue[] {
    const items: PyValue[] = []
    this.#skipSpace()
    if (this.#take(']')) return items
    for (;;) {
      this.#skipSpace()
      items.push(this.#readValue(depth + 1))
      this.#skipSpace()
      if (this.#take(']')) return items
      if (!this.#take(',')) throw new NotJson()
    }
  }

  #readObject(depth: number): PyDict {
    const members = new Map<string, PyValue>()
    this.#skipSpace()
    if (this.#take('}')) return members
    for (;;) {
      this.#skipSpace()
      if (!this.#take('"')) throw new NotJson()
      const key = this.#readText()
      this.#skipSpace()
      if (!this.#take(':')) throw new NotJson()
      this.#skipSpace()
      members.set(key, this.#readValue(depth + 1))
      this.#skipSpace()
      if (this.#take('}')) return members
      if (!this.#take(',')) throw new NotJson()
    }
  }
}

/** `json.loads(text)`; undefined when the text is not JSON. */
export function readPyJson(text: string): PyValue | undefined {
  try {
    return new JsonReader(text).readDocument()
  } catch (error) {
    if (error instanceof NotJson) return undefined
    throw error
  }
}

// JSON.stringify escapes a lone surrogate, Python leaves it alone.
const LONE_SURROGATE_ESCAPE = /\\u(d[89a-f][0-9a-f]{2})/g

function dumpText(text: string): string {
  const dumped = JSON.stringify(text)
  if (text.isWellFormed()) return dumped
  return dumped.replace(LONE_SURROGATE_ESCAPE, (whole, digits: string, offset: number) =>
    // A backslash of the text itself was doubled: such a `\\ud800` is six characters, not an escape.
    countBackslashes(dumped, offset) % 2 === 1 ? whole : String.fromCharCode(Number.parseInt(digits, 16)),
  )
}

function countBackslashes(text: string, end: number): number {
  let count = 0
  while (text[end - 1 - count] === '\\') count += 1
  return count
}

/** `json.dumps(value, ensure_ascii=False, indent=…)`; `null` keeps everything on one line. */
export function dumpPyJson(value: PyValue, indent: number | null): string {
  return dump(value, indent === null ? null : ' '.repeat(indent), '\n')
}

function dump(value: PyValue, indent: string | null, lineStart: string): string {
  if (value === null || typeof value === 'boolean') return String(value)
  if (typeof value === 'string') return dumpText(value)
  if (typeof value === 'bigint' || typeof value === 'number') return dumpPythonNumber(value)
  const inner = indent === null ? '' : lineStart + indent
  if (isPyList(value)) {
    return enclose(
      '[]',
      value.map((item) => dump(item, indent, inner)),
      { indent, inner, lineStart },
    )
  }
  if (!(value instanceof Map)) {
    throw new NodeError('TypeError', `Object of type ${pyTypeName(value)} is not JSON serializable`)
  }
  const members = [...value].map(([key, item]) => `${dumpText(key)}: ${dump(item, indent, inner)}`)
  return enclose('{}', members, { indent, inner, lineStart })
}

function enclose(
  [open, close]: string,
  members: readonly string[],
  { indent, inner, lineStart }: { indent: string | null; inner: string; lineStart: string },
): string {
  if (members.length === 0) return open + close
  if (indent === null) return open + members.join(', ') + close
  return open + inner + members.join(`,${inner}`) + lineStart + close
}
