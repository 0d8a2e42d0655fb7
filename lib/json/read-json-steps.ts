/**
 * Reads a large JSON text in steps, from its bytes, within limits that are checked while reading. The cost of parsing depends on
 * the number of values far more than on the bytes, and later code processes whole objects at once: so depth, values, members of
 * one object and digits are all bounded. The bytes must be valid UTF-8. Throws SyntaxError, JsonLimitError or JsonRepeatError.
 */
import type { Work } from '../waiting/turns.ts'
import {
  BACKSLASH,
  CLOSING_BRACE,
  CLOSING_BRACKET,
  COLON,
  COMMA,
  type NumberReader,
  OPENING_BRACE,
  OPENING_BRACKET,
  QUOTE,
  type Read,
} from './read-json.ts'

export interface JsonLimits {
  readonly maxDepth: number
  /** Values at every level together. */
  readonly maxValues: number
  /** Members of any one object. */
  readonly maxMembers: number
  /** Total digits of all numbers that are longer than any seed: reading those takes time quadratic in their length. */
  readonly maxLongDigits: number
}

export type JsonFault =
  | 'too_deep'
  | 'too_many_values'
  | 'too_many_members'
  | 'too_many_digits'
  | 'too_much_space'
  | 'too_long_name'

export class JsonLimitError extends Error {
  override readonly name = 'JsonLimitError'
  readonly fault: JsonFault
  constructor(fault: JsonFault) {
    super(fault)
    this.fault = fault
  }
}

/** An object has two members of one name: of those, one reader takes the first and another one the last. */
export class JsonRepeatError extends Error {
  override readonly name = 'JsonRepeatError'
  /** Outermost first; ends with the name. */
  readonly path: readonly (string | number)[]
  constructor(path: readonly (string | number)[]) {
    super('a member occurs twice')
    this.path = path
  }
}

interface ReadJsonOptions<T> {
  readonly readNumber: NumberReader<T>
  readonly limits: JsonLimits
  /** Left out: of members of one name the last counts, as with JSON.parse. */
  readonly refusesRepeated?: boolean
}

type Container<T> = { [key: string]: Read<T> } | Read<T>[]

interface Frame<T> {
  readonly container: Container<T>
  /** The name of the member whose value comes next; null in a list. */
  key: string | null
  members: number
}

// About a millisecond of work between two yields.
const STEP_VALUES = 2000
const STEP_BYTES = 262_144
// The most white space between two values; no formatter of JSON comes near it.
export const MAX_SPACE = 1_048_576
export const MAX_NAME_BYTES = 65_536
// As many digits as 2^64 - 1 has.
const SEED_DIGITS = 20
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/

const ESCAPE_U = 0x75
const NOT_ASCII = 0x80
const CONTINUATION_MASK = 0xc0

export function* readJsonSteps<T>(bytes: Buffer, options: ReadJsonOptions<T>): Work<Read<T>> {
  const reader = new StepReader(bytes, options)
  let sinceYield = 0
  for (;;) {
    const string = reader.atLongString() ? yield* reader.readLongString() : null
    if (reader.take(string)) return reader.result as Read<T>
    sinceYield++
    if (sinceYield < STEP_VALUES) continue
    sinceYield = 0
    yield
  }
}

class StepReader<T> {
  result: Read<T> | undefined
  readonly #bytes: Buffer
  readonly #readNumber: NumberReader<T>
  readonly #limits: JsonLimits
  readonly #refusesRepeated: boolean
  readonly #stack: Frame<T>[] = []
  #at = 0
  #values = 0
  #longDigits = 0

  constructor(bytes: Buffer, { readNumber, limits, refusesRepeated = false }: ReadJsonOptions<T>) {
    this.#bytes = bytes
    this.#readNumber = readNumber
    this.#limits = limits
    this.#refusesRepeated = refusesRepeated
    this.#skipSpace()
  }

  /** Whether a string begins here that is long enough for steps of its own. */
  atLongString(): boolean {
    const { length } = this.#bytes
    if (this.#bytes[this.#at] !== QUOTE || length - this.#at < STEP_BYTES) return false
    const end = this.#bytes.indexOf(QUOTE, this.#at + 1)
    return end === -1 || end - this.#at > STEP_BYTES || this.#bytes[end - 1] === BACKSLASH
  }

  /** Reads one value, which may open a container, and closes the containers that it completes. True at the end of the text. `string`: the value, if it was read already. */
  take(string: string | null): boolean {
    this.#values++
    if (this.#values > this.#limits.maxValues) throw new JsonLimitError('too_many_values')
    const first = this.#bytes[this.#at]
    if (string !== null) return this.#put(string)
    if (first === OPENING_BRACE) return this.#open({ container: {}, key: '', members: 0 }, CLOSING_BRACE)
    if (first === OPENING_BRACKET) return this.#open({ container: [], key: null, members: 0 }, CLOSING_BRACKET)
    return this.#put(first === QUOTE ? this.#readString() : this.#readWord())
  }

  #open(frame: Frame<T>, closing: number): boolean {
    this.#at++
    this.#skipSpace()
    if (this.#bytes[this.#at] === closing) {
      this.#at++
      return this.#put(frame.container)
    }
    if (this.#stack.length >= this.#limits.maxDepth) throw new JsonLimitError('too_deep')
    this.#stack.push(frame)
    if (frame.key !== null) this.#readKey(frame)
    return false
  }

  /** Adds a complete value to its container, and closes the containers that end after it. */
  #put(complete: Read<T>): boolean {
    let value = complete
    for (;;) {
      this.#skipSpace()
      const frame = this.#stack.at(-1)
      if (frame === undefined) return this.#end(value)
      this.#add(frame, value)
      const next = this.#bytes[this.#at]
      this.#at++
      if (next === COMMA) {
        this.#skipSpace()
        if (frame.key !== null) this.#readKey(frame)
        return false
      }
      if (next !== (frame.key === null ? CLOSING_BRACKET : CLOSING_BRACE)) throw malformed()
      this.#stack.pop()
      value = frame.container
    }
  }

  #end(value: Read<T>): boolean {
    if (this.#at !== this.#bytes.length) throw malformed()
    this.result = value
    return true
  }

  #add(frame: Frame<T>, value: Read<T>): void {
    const { container, key } = frame
    if (key === null) (container as Read<T>[]).push(value)
    // Assigning this one name would change the prototype of the object.
    else if (key === '__proto__') {
      Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true })
    } else (container as { [key: string]: Read<T> })[key] = value
  }

  #readKey(frame: Frame<T>): void {
    frame.members++
    if (frame.members > this.#limits.maxMembers) throw new JsonLimitError('too_many_members')
    if (this.#bytes[this.#at] !== QUOTE) throw malformed()
    frame.key = this.#readString(MAX_NAME_BYTES)
    if (this.#refusesRepeated && Object.hasOwn(frame.container, frame.key)) throw new JsonRepeatError(this.#path())
    this.#skipSpace()
    if (this.#bytes[this.#at] !== COLON) throw malformed()
    this.#at++
    this.#skipSpace()
  }

  #path(): (string | number)[] {
    return this.#stack.map(({ key, container }) => key ?? (container as Read<T>[]).length)
  }

  #readString(maxBytes = Number.POSITIVE_INFINITY): string {
    const bytes = this.#bytes
    const start = this.#at
    const until = start + maxBytes
    let at = start + 1
    let isAscii = true
    let hasEscapes = false
    for (let byte = bytes[at]; byte !== QUOTE; byte = bytes[++at]) {
      if (at > until) throw new JsonLimitError('too_long_name')
      if (byte === BACKSLASH) {
        hasEscapes = true
        at++
      } else if (byte >= NOT_ASCII) isAscii = false
      // Past the end the byte is `undefined`, which fails this comparison as well.
      else if (!(byte >= 0x20)) throw malformed()
    }
    this.#at = at + 1
    if (hasEscapes) return parseString(bytes.toString('utf8', start, at + 1))
    return bytes.toString(isAscii ? 'latin1' : 'utf8', start + 1, at)
  }

  /** Reads a string in chunks; a chunk ends neither inside an escape nor inside a character. */
  *readLongString(): Work<string> {
    let text = ''
    let from = this.#at + 1
    let at = from
    while (this.#bytes[at] !== QUOTE) {
      at = this.#endOfPiece(at)
      text += parseString(`"${this.#bytes.toString('utf8', from, at)}"`)
      from = at
      yield
    }
    this.#at = at + 1
    return text
  }

  #endOfPiece(from: number): number {
    const bytes = this.#bytes
    let until = Math.min(from + STEP_BYTES, bytes.length)
    const piece = bytes.subarray(from, until)
    if (piece.includes(BACKSLASH)) until = endOfEscapes(bytes, from, until)
    else if (piece.includes(QUOTE)) until = from + piece.indexOf(QUOTE)
    while (until < bytes.length && (bytes[until] & CONTINUATION_MASK) === NOT_ASCII) until++
    if (until >= bytes.length) throw malformed()
    return until
  }

  /** A number, or one of `true`, `false` and `null`. */
  #readWord(): Read<T> {
    const bytes = this.#bytes
    const start = this.#at
    const { maxLongDigits } = this.#limits
    let at = start
    while (isWordByte(bytes[at]) && at - start <= maxLongDigits) at++
    const isLong = at - start > SEED_DIGITS
    if (isLong) this.#longDigits += at - start
    if (this.#longDigits > maxLongDigits) throw new JsonLimitError('too_many_digits')
    const word = bytes.toString('latin1', start, at)
    this.#at = at
    if (word === 'true') return true
    if (word === 'false') return false
    if (word === 'null') return null
    if (!NUMBER.test(word)) throw malformed()
    return this.#readNumber(word)
  }

  #skipSpace(): void {
    const bytes = this.#bytes
    let at = this.#at
    let byte = bytes[at]
    const until = at + MAX_SPACE
    while (at < until && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09)) byte = bytes[++at]
    if (at === until) throw new JsonLimitError('too_much_space')
    this.#at = at
  }
}

/** The index of the quote that ends the string, or the first index after `until` that is not inside an escape. */
function endOfEscapes(bytes: Buffer, from: number, until: number): number {
  let at = from
  while (at < until && bytes[at] !== QUOTE) {
    if (bytes[at] !== BACKSLASH) at++
    else at += bytes[at + 1] === ESCAPE_U ? 6 : 2
  }
  return at
}

/** Letters, digits, signs and the point: the characters of numbers and of `true`, `false` and `null`. */
function isWordByte(byte: number | undefined): boolean {
  return byte !== undefined && byte > 0x20 && byte !== COMMA && byte !== CLOSING_BRACE && byte !== CLOSING_BRACKET
}

function parseString(quoted: string): string {
  return JSON.parse(quoted) as string
}

function malformed(): SyntaxError {
  return new SyntaxError('the text is not valid JSON')
}
