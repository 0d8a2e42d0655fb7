/** Positions in a text that a pattern can ask for, which take no character: ends, line ends, word boundaries. */
import { isWord } from './characters.ts'
import type { Place } from './pattern-syntax.ts'

const NEWLINE = 10

function isBoundary(text: Int32Array, at: number, ascii: boolean): boolean {
  const isWordBefore = at > 0 && isWord(text[at - 1], ascii)
  const isWordAfter = at < text.length && isWord(text[at], ascii)
  return isWordBefore !== isWordAfter
}

/** Indexed by the operand of the instruction. An empty text has neither boundaries nor places inside of words. */
const TESTS: Readonly<Record<Place, (text: Int32Array, at: number) => boolean>> = {
  'text start': (_, at) => at === 0,
  'text end': (text, at) => at === text.length,
  'line start': (text, at) => at === 0 || text[at - 1] === NEWLINE,
  'line end': (text, at) => at === text.length || text[at] === NEWLINE,
  'last line end': (text, at) => at === text.length || (at === text.length - 1 && text[at] === NEWLINE),
  boundary: (text, at) => text.length > 0 && isBoundary(text, at, false),
  inside: (text, at) => text.length > 0 && !isBoundary(text, at, false),
  'ascii boundary': (text, at) => text.length > 0 && isBoundary(text, at, true),
  'ascii inside': (text, at) => text.length > 0 && !isBoundary(text, at, true),
}

const PLACES = Object.keys(TESTS) as Place[]
const TESTS_IN_ORDER = PLACES.map((place) => TESTS[place])

/** How a program names a place. */
export function placeNumber(place: Place): number {
  return PLACES.indexOf(place)
}

export function isAtPlace(number: number, text: Int32Array, at: number): boolean {
  return TESTS_IN_ORDER[number](text, at)
}
