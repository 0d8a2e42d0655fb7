/** A regular expression as a tree. Flags are settled while parsing: every node says for itself how it compares. */

export interface RegexFlags {
  readonly ignoreCase: boolean
  readonly multiline: boolean
  readonly dotAll: boolean
  readonly verbose: boolean
  /** `\w`, `\d`, `\s`, `\b` and case know ASCII only. */
  readonly ascii: boolean
}

/** How characters are compared: as they are, or by their lower case. */
export type Folding = 'none' | 'unicode' | 'ascii'

export type Category = 'digit' | 'space' | 'word'

export type SetItem =
  | { readonly kind: 'range'; readonly low: number; readonly high: number }
  | { readonly kind: 'category'; readonly category: Category; readonly isNegated: boolean; readonly ascii: boolean }

export type Position =
  | 'text start'
  | 'text end'
  | 'line start'
  | 'line end'
  | 'last line end'
  | 'boundary'
  | 'inside'
  | 'ascii boundary'
  | 'ascii inside'

export type RepeatMode = 'greedy' | 'lazy' | 'possessive'

/** Stands for "no upper bound", as in CPython. */
export const UNBOUNDED = 2 ** 32 - 1

export type RegexNode =
  | { readonly kind: 'literal'; readonly code: number; readonly folding: Folding }
  | { readonly kind: 'set'; readonly items: readonly SetItem[]; readonly isNegated: boolean; readonly folding: Folding }
  | { readonly kind: 'any'; readonly withNewline: boolean }
  | { readonly kind: 'at'; readonly position: Position }
  | { readonly kind: 'sequence'; readonly nodes: readonly RegexNode[] }
  | { readonly kind: 'branch'; readonly options: readonly RegexNode[] }
  | { readonly kind: 'group'; readonly index: number; readonly body: RegexNode }
  | {
      readonly kind: 'repeat'
      readonly min: number
      readonly max: number
      readonly mode: RepeatMode
      readonly body: RegexNode
    }
  | {
      readonly kind: 'look'
      /** Characters to step back first; null looks ahead. */
      readonly behind: number | null
      readonly isNegated: boolean
      readonly body: RegexNode
    }
  | { readonly kind: 'atomic'; readonly body: RegexNode }
  | { readonly kind: 'reference'; readonly group: number; readonly folding: Folding }
  | { readonly kind: 'conditional'; readonly group: number; readonly yes: RegexNode; readonly no: RegexNode }

export interface ParsedRegex {
  readonly root: RegexNode
  readonly groupCount: number
  readonly groupNames: ReadonlyMap<string, number>
}

/** The pattern or the replacement is wrong: Python's `re.error`. */
export class RegexError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'RegexError'
  }
}

export interface Width {
  readonly min: number
  readonly max: number
}

const NOTHING: Width = { min: 0, max: 0 }
const ONE: Width = { min: 1, max: 1 }

const capped = (width: number) => Math.min(width, UNBOUNDED)

/**
 * How many characters a node can match; a look-behind needs a fixed number of them. `groupWidths` holds the groups that
 * are closed already.
 */
export function widthOf(node: RegexNode, groupWidths: ReadonlyMap<number, Width>): Width {
  const of = (part: RegexNode) => widthOf(part, groupWidths)
  switch (node.kind) {
    case 'literal':
    case 'set':
    case 'any':
      return ONE
    case 'at':
    case 'look':
      return NOTHING
    case 'sequence':
      return node.nodes.map(of).reduce((a, b) => ({ min: capped(a.min + b.min), max: capped(a.max + b.max) }), NOTHING)
    case 'branch':
      return either(node.options.map(of))
    case 'conditional':
      return either([of(node.yes), of(node.no)])
    case 'repeat': {
      const body = of(node.body)
      return { min: capped(body.min * node.min), max: capped(body.max * node.max) }
    }
    case 'group':
    case 'atomic':
      return of(node.body)
    case 'reference':
      return groupWidths.get(node.group) ?? NOTHING
  }
}

function either(widths: readonly Width[]): Width {
  return { min: Math.min(...widths.map(({ min }) => min)), max: Math.max(...widths.map(({ max }) => max)) }
}

// Which characters Python counts as digits, spaces and letters, and which it holds for the same when case is ignored; and the
// positions between characters that a pattern can ask for: ends, line ends, word boundaries.

const UNICODE: Readonly<Record<Category, RegExp>> = {
  digit: /\p{Nd}/u,
  // The four separators of ASCII are spaces to Python; U+FEFF, which is one to JavaScript, is none.
  // biome-ignore lint/suspicious/noControlCharactersInRegex: the separators are control characters
  space: /[\x1c-\x1f\x85]|(?!\ufeff)\s/,
  word: /[\p{L}\p{N}_]/u,
}
const ASCII: Readonly<Record<Category, RegExp>> = { digit: /[0-9]/, space: /[\t-\r ]/, word: /[a-zA-Z0-9_]/ }

// Most texts are ASCII: one look-up instead of a search.
const ASCII_WORD = Uint8Array.from({ length: 128 }, (_, code) => Number(ASCII.word.test(String.fromCharCode(code))))

function isWord(code: number, ascii: boolean): boolean {
  if (code < 128) return ASCII_WORD[code] === 1
  return !ascii && UNICODE.word.test(String.fromCodePoint(code))
}

function isInCategory(code: number, category: Category, ascii: boolean): boolean {
  return (ascii ? ASCII : UNICODE)[category].test(String.fromCodePoint(code))
}

const isAsciiUpper = (code: number) => code >= 65 && code <= 90

/** The simple lower case of a character: always one character. */
function lowerOf(code: number): number {
  if (code < 128) return isAsciiUpper(code) ? code + 32 : code
  return String.fromCodePoint(code).toLowerCase().codePointAt(0) ?? code
}

export function fold(code: number, folding: Folding): number {
  if (folding === 'none') return code
  if (folding === 'ascii') return isAsciiUpper(code) ? code + 32 : code
  return lowerOf(code)
}

/** Lower-case letters that share their upper case: each row matches any of its members. */
const EQUIVALENT_ROWS = [
  'iı',
  'sſ',
  'µμ',
  '\u0345ι\u1fbe',
  '\u0390\u1fd3',
  '\u03b0\u1fe3',
  'βϐ',
  'εϵ',
  'θϑ',
  'κϰ',
  'πϖ',
  'ρϱ',
  'ςσ',
  'φϕ',
  'в\u1c80',
  'д\u1c81',
  'о\u1c82',
  'с\u1c83',
  'т\u1c84\u1c85',
  'ъ\u1c86',
  'ѣ\u1c87',
  '\u1c88ꙋ',
  'ṡẛ',
  '\ufb05\ufb06',
]
const EQUIVALENTS: ReadonlyMap<number, readonly number[]> = new Map(
  EQUIVALENT_ROWS.flatMap((row) => {
    const codes = Array.from(row, (character) => character.codePointAt(0) ?? 0)
    return codes.map((code) => [code, codes] as const)
  }),
)

/** A lower-case letter and those that match it when case is ignored. */
export function equivalentsOf(lower: number): readonly number[] {
  return EQUIVALENTS.get(lower) ?? [lower]
}

/** Characters other than the upper case whose lower case is the given one: Kelvin is a k. */
const OTHER_CAPITALS: ReadonlyMap<number, number> = new Map([
  [0x69, 0x130],
  [0x6b, 0x212a],
  [0xe5, 0x212b],
  [0xdf, 0x1e9e],
  [0x1c6, 0x1c5],
  [0x1c9, 0x1c8],
  [0x1cc, 0x1cb],
  [0x1f3, 0x1f2],
  [0x3b8, 0x3f4],
  [0x3c9, 0x2126],
  [0x1fb3, 0x1fbc],
  [0x1fc3, 0x1fcc],
  [0x1ff3, 0x1ffc],
])

/** All characters whose lower case is the given one. */
function sourcesOf(lower: number): readonly number[] {
  const upper = Array.from(String.fromCodePoint(lower).toUpperCase())
  const sources = [lower]
  if (upper.length === 1) sources.push(upper[0].codePointAt(0) ?? lower)
  // Greek letters with an iota below: their capitals are eight code points further.
  else if (lower >= 0x1f80 && lower <= 0x1fa7) sources.push(lower + 8)
  const other = OTHER_CAPITALS.get(lower)
  if (other !== undefined) sources.push(other)
  return sources.filter((code) => lowerOf(code) === lower)
}

export type CharacterTest = (code: number) => boolean

function rangeTest(low: number, high: number, folding: Folding): CharacterTest {
  const isIn = (code: number) => code >= low && code <= high
  if (folding === 'none') return isIn
  if (folding === 'ascii') return (code) => isIn(code) || (code >= 97 && code <= 122 && isIn(code - 32))
  return (code) => isIn(code) || equivalentsOf(code).some((equal) => sourcesOf(equal).some(isIn))
}

function itemTest(item: SetItem, folding: Folding): CharacterTest {
  if (item.kind === 'range') return rangeTest(item.low, item.high, folding)
  const { category, isNegated, ascii } = item
  return (code) => isInCategory(code, category, ascii) !== isNegated
}

const TABLE_SIZE = 256

/** A test for one character; `code` is folded before it is compared. The first characters are looked up in a table. */
export function setTest(items: readonly SetItem[], isNegated: boolean, folding: Folding): CharacterTest {
  const tests = items.map((item) => itemTest(item, folding))
  const test: CharacterTest = (code) => {
    const folded = fold(code, folding)
    return tests.some((isIn) => isIn(folded)) !== isNegated
  }
  const table = Uint8Array.from({ length: TABLE_SIZE }, (_, code) => Number(test(code)))
  return (code) => (code < TABLE_SIZE ? table[code] === 1 : test(code))
}

const NEWLINE = 10

function isBoundary(text: Int32Array, at: number, ascii: boolean): boolean {
  const isWordBefore = at > 0 && isWord(text[at - 1], ascii)
  const isWordAfter = at < text.length && isWord(text[at], ascii)
  return isWordBefore !== isWordAfter
}

/** Indexed by the operand of the instruction. An empty text has neither boundaries nor positions inside of words. */
const TESTS: Readonly<Record<Position, (text: Int32Array, at: number) => boolean>> = {
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

const POSITIONS = Object.keys(TESTS) as Position[]
const TESTS_IN_ORDER = POSITIONS.map((position) => TESTS[position])

/** How a program names a position. */
export function positionNumber(position: Position): number {
  return POSITIONS.indexOf(position)
}

export function isAtPosition(number: number, text: Int32Array, at: number): boolean {
  return TESTS_IN_ORDER[number](text, at)
}
