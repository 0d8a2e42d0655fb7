/**
 * Reads JSON text and lets the caller decide what each number becomes. `JSON.parse` could do that with a reviver, but more than ten
 * times slower, and the text is untrusted. Returns null when the text is not JSON; the caller then uses `JSON.parse` for the error
 * message. Throws RangeError when the nesting is deeper than the stack.
 */
/** The characters that structure JSON text; as bytes of UTF-8 they have the same codes. */
export const QUOTE = 0x22
export const BACKSLASH = 0x5c
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPENING_BRACKET = 0x5b
export const CLOSING_BRACKET = 0x5d
export const OPENING_BRACE = 0x7b
export const CLOSING_BRACE = 0x7d

export type NumberReader<T> = (source: string) => T

export type Read<T> = null | boolean | string | T | Read<T>[] | { [key: string]: Read<T> }

// Sticky, so that they match at one position only. A string without escapes is its own value.
const SPACE = /[ \t\n\r]*/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these characters inside strings
const PLAIN_STRING = /"[^"\\\u0000-\u001f]*"/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y

export function readJson<T>(text: string, readNumber: NumberReader<T>): { readonly value: Read<T> } | null {
  try {
    return { value: new Reader(text, readNumber).readWhole() }
  } catch (error) {
    if (error === MALFORMED) return null
    throw error
  }
}

/** One shared object: the catcher only needs to know that the text is malformed. */
const MALFORMED = new Error('malformed JSON')

class Reader<T> {
  readonly #text: string
  readonly #readNumber: NumberReader<T>
  #at = 0

  constructor(text: string, readNumber: NumberReader<T>) {
    this.#text = text
    this.#readNumber = readNumber
  }

  readWhole(): Read<T> {
    this.#skipSpace()
    const value = this.#readValue()
    this.#skipSpace()
    if (this.#at !== this.#text.length) throw MALFORMED
    return value
  }

  #readValue(): Read<T> {
    const first = this.#text.charCodeAt(this.#at)
    if (first === QUOTE) return this.#readString()
    if (first === OPENING_BRACE) return this.#readObject()
    if (first === OPENING_BRACKET) return this.#readArray()
    if (first < OPENING_BRACKET) return this.#readNumber(this.#take(NUMBER))
    if (this.#text.startsWith('true', this.#at)) return this.#skip(4, true)
    if (this.#text.startsWith('false', this.#at)) return this.#skip(5, false)
    if (this.#text.startsWith('null', this.#at)) return this.#skip(4, null)
    throw MALFORMED
  }

  #readObject(): { [key: string]: Read<T> } {
    const object: { [key: string]: Read<T> } = {}
    for (let more = this.#opens(CLOSING_BRACE); more; more = this.#goesOn(CLOSING_BRACE)) {
      if (this.#text.charCodeAt(this.#at) !== QUOTE) throw MALFORMED
      const key = this.#readString()
      this.#skipSpace()
      if (this.#text.charCodeAt(this.#at) !== COLON) throw MALFORMED
      this.#at++
      this.#skipSpace()
      const value = this.#readValue()
      // Assigning this one name would change the prototype of the object.
      if (key === '__proto__') {
        Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
      } else object[key] = value
    }
    return object
  }

  #readArray(): Read<T>[] {
    const array: Read<T>[] = []
    for (let more = this.#opens(CLOSING_BRACKET); more; more = this.#goesOn(CLOSING_BRACKET)) {
      array.push(this.#readValue())
    }
    return array
  }

  /** Steps into an object or array; false when it is empty. */
  #opens(closing: number): boolean {
    this.#at++
    this.#skipSpace()
    if (this.#text.charCodeAt(this.#at) !== closing) return true
    this.#at++
    return false
  }

  /** Steps to the next item, or out. */
  #goesOn(closing: number): boolean {
    this.#skipSpace()
    const next = this.#text.charCodeAt(this.#at)
    if (next !== COMMA && next !== closing) throw MALFORMED
    this.#at++
    if (next === closing) return false
    this.#skipSpace()
    return true
  }

  #readString(): string {
    const start = this.#at
    PLAIN_STRING.lastIndex = start
    if (PLAIN_STRING.test(this.#text)) {
      this.#at = PLAIN_STRING.lastIndex
      return this.#text.slice(start + 1, this.#at - 1)
    }
    this.#at = this.#endOfString(start + 1) + 1
    try {
      return JSON.parse(this.#text.slice(start, this.#at)) as string
    } catch {
      throw MALFORMED
    }
  }

  /** The index of the closing quote: one with an even number of backslashes before it. */
  #endOfString(from: number): number {
    for (let quote = this.#text.indexOf('"', from); quote !== -1; quote = this.#text.indexOf('"', quote + 1)) {
      let before = quote
      while (this.#text.charCodeAt(before - 1) === BACKSLASH) before--
      if ((quote - before) % 2 === 0) return quote
    }
    throw MALFORMED
  }

  #skip(length: number, value: null | boolean): null | boolean {
    this.#at += length
    return value
  }

  #take(pattern: RegExp): string {
    const start = this.#at
    pattern.lastIndex = start
    if (!pattern.test(this.#text)) throw MALFORMED
    this.#at = pattern.lastIndex
    return this.#text.slice(start, this.#at)
  }

  #skipSpace(): void {
    // Most texts have no white space between their parts.
    if (this.#text.charCodeAt(this.#at) > 0x20) return
    SPACE.lastIndex = this.#at
    SPACE.test(this.#text)
    this.#at = SPACE.lastIndex
  }
}
