/** Methods of text as Python has them; it counts in code points, not in UTF-16 units. */
import { pythonStrip } from '../../lib/python/text.ts'
import { refuseLongText } from './text-limit.ts'

/** `len(text)`. */
export function pyLength(text: string): number {
  let length = text.length
  for (let at = 0; at < text.length - 1; at += 1) {
    if (isHighSurrogate(text.charCodeAt(at)) && isLowSurrogate(text.charCodeAt(at + 1))) {
      length -= 1
      at += 1
    }
  }
  return length
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
const isLowSurrogate = (unit: number) => unit >= 0xdc00 && unit <= 0xdfff

function hasSurrogates(text: string): boolean {
  return /[\ud800-\udfff]/.test(text)
}

/** `text[start:end]` with ints of any size; negative ones count from the end. */
export function pySlice(text: string, start: number | bigint, end: number | bigint): string {
  // Without surrogates units are code points, and JavaScript's slice follows the same rules.
  if (!hasSurrogates(text)) return text.slice(Number(start), Number(end))
  return Array.from(text).slice(Number(start), Number(end)).join('')
}

/** `text[:count]`. */
export function pyHead(text: string, count: number): string {
  return text.length <= count ? text : pySlice(text, 0, count)
}

// JavaScript's own search compares up to this many characters at each position of the text: still well under a second.
const SHORT_SEARCH = 32

/**
 * Where a text occurs next in another, from `start` on; -1: nowhere. Linear in both, by Knuth, Morris and Pratt: JavaScript's own
 * search takes hours for a long `find` that nearly occurs again and again, and nothing can stop it.
 */
function createSearch(find: string): (text: string, start: number) => number {
  if (find.length <= SHORT_SEARCH) return (text, start) => text.indexOf(find, start)
  const { length } = find
  /** Of each beginning of `find`, how long a shorter one is that it ends with. */
  const borders = new Int32Array(length)
  for (let at = 1, border = 0; at < length; at += 1) {
    const unit = find.charCodeAt(at)
    while (border > 0 && find.charCodeAt(border) !== unit) border = borders[border - 1]
    if (find.charCodeAt(border) === unit) border += 1
    borders[at] = border
  }
  return (text, start) => {
    let matched = 0
    for (let at = start; at < text.length; at += 1) {
      const unit = text.charCodeAt(at)
      while (matched > 0 && find.charCodeAt(matched) !== unit) matched = borders[matched - 1]
      if (find.charCodeAt(matched) === unit) matched += 1
      if (matched === length) return at - length + 1
    }
    return -1
  }
}

/** `find in text`. */
export function pyContains(text: string, find: string): boolean {
  return createSearch(find)(text, 0) !== -1
}

function pySplit(text: string, find: string): string[] {
  const search = createSearch(find)
  const parts: string[] = []
  let start = 0
  for (let at = search(text, 0); at !== -1; at = search(text, start)) {
    parts.push(text.slice(start, at))
    start = at + find.length
  }
  parts.push(text.slice(start))
  return parts
}

/** `text.replace(find, replacement)`: literal, every occurrence; an empty `find` stands between all characters. */
export function pyReplace(text: string, find: string, replacement: string): string {
  if (find === '') {
    const characters = Array.from(text)
    refuseLongText(text.length + (characters.length + 1) * replacement.length)
    return ['', ...characters, ''].join(replacement)
  }
  const parts = pySplit(text, find)
  refuseLongText(text.length + (parts.length - 1) * (replacement.length - find.length))
  return parts.join(replacement)
}

// `pythonStrip` knows Python's set of spaces and strips both sides; a sentinel protects the side that stays.
const SENTINEL = '|'

/** `text.lstrip()`. */
export function pyStripLeft(text: string): string {
  return pythonStrip(text + SENTINEL).slice(0, -1)
}

/** `text.rstrip()`. */
export function pyStripRight(text: string): string {
  return pythonStrip(SENTINEL + text).slice(1)
}

/**
 * Python's `upper`, `lower`, `capitalize` and `title`. JavaScript's full mappings agree with Python's except that it knows no
 * title case: `ǆ` becomes `ǅ`, `ß` becomes `Ss`, and Georgian letters stay as they are.
 */
const CASED = /\p{Cased}/u
const CASE_IGNORABLE = /\p{Case_Ignorable}/u

const CAPITAL_SIGMA = 'Σ'
// The four Latin digraphs have a form of their own, one after the other: upper, title, lower.
const DIGRAPHS = ['Ǆǅǆ', 'Ǉǈǉ', 'Ǌǋǌ', 'Ǳǲǳ']
const TITLE_OF_DIGRAPH: ReadonlyMap<string, string> = new Map(
  DIGRAPHS.flatMap((forms) => [...forms].map((form) => [form, forms[1]] as const)),
)
// Georgian has capitals for whole texts only; Greek capitals with an iota beside them are title forms already.
const STAYS_IN_TITLE = /^[\u10d0-\u10fa\u10fd-\u10ff\u1f88-\u1f8f\u1f98-\u1f9f\u1fa8-\u1faf\u1fbc\u1fcc\u1ffc]$/
const GREEK_IOTA = 'Ι'
const IOTA_BELOW = '\u0345'
// Greek letters with an iota below have their title form a fixed distance away.
const TITLE_IS_8_ABOVE = /^[\u1f80-\u1f87\u1f90-\u1f97\u1fa0-\u1fa7]$/
const TITLE_IS_9_ABOVE = /^[\u1fb3\u1fc3\u1ff3]$/

export function pyUpper(text: string): string {
  return text.toUpperCase()
}

export function pyLower(text: string): string {
  return text.toLowerCase()
}

/** `str.title()` of one character. */
function titleOf(character: string): string {
  const digraph = TITLE_OF_DIGRAPH.get(character)
  if (digraph !== undefined) return digraph
  if (STAYS_IN_TITLE.test(character)) return character
  const code = character.codePointAt(0) ?? 0
  if (TITLE_IS_8_ABOVE.test(character)) return String.fromCodePoint(code + 8)
  if (TITLE_IS_9_ABOVE.test(character)) return String.fromCodePoint(code + 9)
  const upper = [...character.toUpperCase()]
  if (upper.length < 2) return upper[0] ?? character
  // ʼn is an apostrophe and a letter: the letter is the capital.
  if (character === 'ŉ') return 'ʼN'
  const [first, ...rest] = upper
  if (rest.at(-1) === GREEK_IOTA) return [first, ...rest.slice(0, -1), IOTA_BELOW].join('')
  return first + rest.join('').toLowerCase()
}

/** Lower case of a character that stands in a text: a capital sigma at the end of a word is another letter. */
function lowerAt(characters: readonly string[], at: number): string {
  if (characters[at] !== CAPITAL_SIGMA) return characters[at].toLowerCase()
  return isFinalSigma(characters, at) ? 'ς' : 'σ'
}

function isFinalSigma(characters: readonly string[], at: number): boolean {
  let before = at - 1
  while (before >= 0 && CASE_IGNORABLE.test(characters[before])) before -= 1
  if (before < 0 || !CASED.test(characters[before])) return false
  let after = at + 1
  while (after < characters.length && CASE_IGNORABLE.test(characters[after])) after += 1
  return after === characters.length || !CASED.test(characters[after])
}

/** The first character in title case, the others in lower case. */
export function pyCapitalize(text: string): string {
  const characters = [...text]
  return characters.map((character, at) => (at === 0 ? titleOf(character) : lowerAt(characters, at))).join('')
}

/** Every character after one without case starts a word: `they're` becomes `They'Re`. */
export function pyTitle(text: string): string {
  const characters = [...text]
  let isInWord = false
  const titled = characters.map((character, at) => {
    const changed = isInWord ? lowerAt(characters, at) : titleOf(character)
    isInWord = CASED.test(character)
    return changed
  })
  return titled.join('')
}
