/** Reads a pattern or a replacement token by token; a backslash and what follows it are one token. Positions are Python's. */
import { type Category, RegexError, type RegexFlags, type SetItem } from './pattern-syntax.ts'

export class PatternSource {
  readonly #characters: readonly string[]
  #index = 0
  /** The token that comes next; null at the end. */
  next: string | null = null

  constructor(text: string) {
    this.#characters = Array.from(text)
    this.#advance()
  }

  #advance(): void {
    const character = this.#characters[this.#index]
    if (character === undefined) {
      this.next = null
      return
    }
    this.#index += 1
    if (character !== '\\') {
      this.next = character
      return
    }
    const escaped = this.#characters[this.#index]
    if (escaped === undefined) throw this.errorAt('bad escape (end of pattern)', this.#characters.length - 1)
    this.#index += 1
    this.next = character + escaped
  }

  /** Takes the next token if it is this one. */
  match(token: string): boolean {
    if (this.next !== token) return false
    this.#advance()
    return true
  }

  get(): string | null {
    const token = this.next
    this.#advance()
    return token
  }

  /** Takes up to `count` tokens out of `allowed`. */
  getWhile(count: number, allowed: string): string {
    let taken = ''
    while (taken.length < count && this.next !== null && this.next.length === 1 && allowed.includes(this.next)) {
      taken += this.get()
    }
    return taken
  }

  /** What stands before `terminator`, which is taken too. */
  getUntil(terminator: string, what: string): string {
    let taken = ''
    for (;;) {
      const token = this.get()
      if (token === null) {
        if (taken === '') throw this.error(`missing ${what}`)
        throw this.error(`missing ${terminator}, unterminated name`, Array.from(taken).length)
      }
      if (token === terminator) {
        if (taken === '') throw this.error(`missing ${what}`, 1)
        return taken
      }
      taken += token
    }
  }

  tell(): number {
    return this.#index - (this.next === null ? 0 : Array.from(this.next).length)
  }

  seek(position: number): void {
    this.#index = position
    this.#advance()
  }

  slice(from: number, to: number): string {
    return this.#characters.slice(from, to).join('')
  }

  error(message: string, back = 0): RegexError {
    return this.errorAt(message, this.tell() - back)
  }

  errorAt(message: string, position: number): RegexError {
    const before = this.#characters.slice(0, position)
    if (!this.#characters.includes('\n')) return new RegexError(`${message} at position ${position}`)
    const line = before.filter((character) => character === '\n').length + 1
    const column = position - before.lastIndexOf('\n')
    return new RegexError(`${message} at position ${position} (line ${line}, column ${column})`)
  }
}

// What a backslash means, inside and outside of a set. References to groups are the parser's.

export const DIGITS = '0123456789'
export const OCTAL_DIGITS = '01234567'
const HEX_DIGITS = '0123456789abcdefABCDEF'
const MAX_CODE = 0x10ffff
const MAX_OCTAL = 0o377

const CHARACTERS: Readonly<Record<string, number>> = { a: 7, b: 8, f: 12, n: 10, r: 13, t: 9, v: 11, '\\': 92 }
const CATEGORIES: Readonly<Record<string, Category>> = { d: 'digit', s: 'space', w: 'word' }
const HEX_LENGTHS: Readonly<Record<string, number>> = { x: 2, u: 4, U: 8 }

/** The code of `\n`, `\t` and the like; `\b` is a backspace only where a word boundary makes no sense. */
export function characterEscape(letter: string): number | null {
  return Object.hasOwn(CHARACTERS, letter) ? CHARACTERS[letter] : null
}

export function categoryEscape(letter: string, { ascii }: RegexFlags): SetItem | null {
  const lower = letter.toLowerCase()
  if (!Object.hasOwn(CATEGORIES, lower)) return null
  return { kind: 'category', category: CATEGORIES[lower], isNegated: letter !== lower, ascii }
}

/** `\x41`, `\u0041`, `\U00000041`; null for other letters. */
export function hexEscape(source: PatternSource, letter: string): number | null {
  const length = Object.hasOwn(HEX_LENGTHS, letter) ? HEX_LENGTHS[letter] : undefined
  if (length === undefined) return null
  const digits = source.getWhile(length, HEX_DIGITS)
  const code = Number.parseInt(digits, 16)
  if (digits.length !== length) throw source.error(`incomplete escape \\${letter}${digits}`, digits.length + 2)
  if (code > MAX_CODE) throw source.error(`bad escape \\${letter}${digits}`, digits.length + 2)
  return code
}

export function octalCode(source: PatternSource, digits: string): number {
  const code = Number.parseInt(digits, 8)
  if (code > MAX_OCTAL) {
    throw source.error(`octal escape value \\${digits} outside of range 0-0o377`, digits.length + 1)
  }
  return code
}

const isAsciiLetter = (character: string) => /^[a-zA-Z]$/.test(character)

/** A backslash before anything else: letters are kept for later use, the rest stands for itself. */
export function plainEscape(source: PatternSource, character: string): number {
  // Names of characters need a table that JavaScript does not have.
  if (character === 'N') throw source.error('character names are not supported', 2)
  if (isAsciiLetter(character)) throw source.error(`bad escape \\${character}`, 2)
  return character.codePointAt(0) ?? 0
}

// `[…]`: single characters, ranges and categories.

const codeOf = (code: number): SetItem => ({ kind: 'range', low: code, high: code })

function readSetEscape(source: PatternSource, flags: RegexFlags, token: string): SetItem {
  const letter = token.slice(1)
  const code = characterEscape(letter) ?? hexEscape(source, letter)
  if (code !== null) return codeOf(code)
  if (OCTAL_DIGITS.includes(letter)) return codeOf(octalCode(source, letter + source.getWhile(2, OCTAL_DIGITS)))
  if (DIGITS.includes(letter)) throw source.error(`bad escape ${token}`, token.length)
  return categoryEscape(letter, flags) ?? codeOf(plainEscape(source, letter))
}

function readItem(source: PatternSource, flags: RegexFlags, token: string): SetItem {
  return token.startsWith('\\') ? readSetEscape(source, flags, token) : codeOf(token.codePointAt(0) ?? 0)
}

interface RangeEnds {
  readonly from: SetItem
  readonly to: SetItem
  /** Where the range begins in the pattern. */
  readonly start: number
}

function toRange(source: PatternSource, { from, to, start }: RangeEnds): SetItem {
  if (from.kind === 'range' && to.kind === 'range' && from.low <= to.low) {
    return { kind: 'range', low: from.low, high: to.low }
  }
  const text = source.slice(start, source.tell())
  throw source.error(`bad character range ${text}`, Array.from(text).length)
}

/** Reads on after the opening bracket, which stood at `opened`. */
export function parseSet(
  source: PatternSource,
  flags: RegexFlags,
  opened: number,
): { items: SetItem[]; isNegated: boolean } {
  const unterminated = () => source.error('unterminated character set', source.tell() - opened)
  const items: SetItem[] = []
  const isNegated = source.match('^')
  for (;;) {
    const start = source.tell()
    const token = source.get()
    if (token === null) throw unterminated()
    // A bracket that closes nothing yet stands for itself.
    if (token === ']' && items.length > 0) return { items, isNegated }
    const item = readItem(source, flags, token)
    if (!source.match('-')) {
      items.push(item)
      continue
    }
    const end = source.get()
    if (end === null) throw unterminated()
    if (end === ']') {
      items.push(item, codeOf(0x2d))
      return { items, isNegated }
    }
    items.push(toRange(source, { from: item, to: readItem(source, flags, end), start }))
  }
}

// `(?i)`, `(?im-s:…)`: the letters of inline flags.

const LETTERS: Readonly<Record<string, keyof RegexFlags | 'unicode' | 'locale'>> = {
  i: 'ignoreCase',
  m: 'multiline',
  s: 'dotAll',
  x: 'verbose',
  a: 'ascii',
  u: 'unicode',
  L: 'locale',
}
const TYPE_LETTERS = 'auL'

interface InlineFlags {
  /** The whole pattern, or the group that begins here. */
  readonly appliesTo: 'pattern' | 'group'
  readonly on: string
  readonly off: string
}

export function isFlagLetter(token: string): boolean {
  return Object.hasOwn(LETTERS, token)
}

const isLetter = (token: string) => /^\p{L}$/u.test(token)

function takeFlag(source: PatternSource, token: string | null, missing: string): string {
  if (token === null) throw source.error(missing)
  if (isFlagLetter(token)) return token
  throw source.error(isLetter(token) ? 'unknown flag' : missing, Array.from(token).length)
}

function checkOn(source: PatternSource, letter: string, before: string): void {
  if (letter === 'L') throw source.error("bad inline flags: cannot use 'L' flag with a str pattern")
  if (TYPE_LETTERS.includes(letter) && [...before].some((other) => other !== letter && TYPE_LETTERS.includes(other))) {
    throw source.error("bad inline flags: flags 'a', 'u' and 'L' are incompatible")
  }
}

/** Reads on after `(?` and `first`. */
export function readInlineFlags(source: PatternSource, first: string): InlineFlags {
  let on = ''
  let token: string | null = first
  if (token !== '-') {
    do {
      const letter = takeFlag(source, token, 'missing -, : or )')
      checkOn(source, letter, on)
      on += letter
      token = source.get()
    } while (token !== ')' && token !== '-' && token !== ':')
  }
  if (token === ')') return { appliesTo: 'pattern', on, off: '' }
  const off = token === '-' ? readOff(source) : ''
  if ([...on].some((letter) => off.includes(letter))) throw source.error('bad inline flags: flag turned on and off', 1)
  return { appliesTo: 'group', on, off }
}

function readOff(source: PatternSource): string {
  let off = ''
  let token = source.get()
  do {
    const letter = takeFlag(source, token, off === '' ? 'missing flag' : 'missing :')
    if (TYPE_LETTERS.includes(letter)) throw source.error("bad inline flags: cannot turn off flags 'a', 'u' and 'L'")
    off += letter
    token = source.get()
  } while (token !== ':')
  return off
}

export function applyFlags(flags: RegexFlags, { on, off }: InlineFlags): RegexFlags {
  const changed: Record<string, boolean> = {}
  for (const letter of on) {
    if (letter === 'u') changed.ascii = false
    else changed[LETTERS[letter]] = true
  }
  for (const letter of off) changed[LETTERS[letter]] = false
  return { ...flags, ...changed }
}
