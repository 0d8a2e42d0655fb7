/** `[…]`: single characters, ranges and categories. */
import { categoryEscape, characterEscape, DIGITS, hexEscape, OCTAL_DIGITS, octalCode, plainEscape } from './escapes.ts'
import type { PatternSource } from './pattern-source.ts'
import type { RegexFlags, SetItem } from './pattern-syntax.ts'

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
