/** What a backslash means, inside and outside of a set. References to groups are the parser's. */
import type { PatternSource } from './pattern-source.ts'
import type { Category, RegexFlags, SetItem } from './pattern-syntax.ts'

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
