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
