/**
 * Python's view of text: which characters it strips and how `repr` writes a string. Workflows come from a Python system, so
 * its messages and conversions show through; this file knows nothing of workflows.
 */

type IsSpace = (character: string) => boolean

const SCRIPT_SPACE = /\s/

// Unicode White_Space plus the four separators U+001C..001F that Python strips too; U+FEFF, which JavaScript trims, is no space.
const isSpace: IsSpace = (character) =>
  (character >= '\x1c' && character <= '\x1f') ||
  character === '\x85' ||
  (character !== '\ufeff' && SCRIPT_SPACE.test(character))

const isAsciiSpace: IsSpace = (character) => character === ' ' || (character >= '\t' && character <= '\r')

// Character by character: a regular expression anchored at the end takes quadratic time on long inner runs of spaces.
function strip(text: string, isOuter: IsSpace): string {
  let start = 0
  let end = text.length
  while (start < end && isOuter(text[start])) start += 1
  while (end > start && isOuter(text[end - 1])) end -= 1
  return text.slice(start, end)
}

/** `str.strip()` without arguments. */
export function pythonStrip(text: string): string {
  return strip(text, isSpace)
}

const NEEDS_ESCAPE = /[\\'\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/u
const ESCAPED = /[\\\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}]/gu
const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  ' ': ' ',
}

function escapeCharacter(character: string): string {
  const short = SHORT_ESCAPES[character]
  if (short !== undefined) return short
  const code = character.codePointAt(0) ?? 0
  if (code < 0x100) return `\\x${code.toString(16).padStart(2, '0')}`
  if (code < 0x10000) return `\\u${code.toString(16).padStart(4, '0')}`
  return `\\U${code.toString(16).padStart(8, '0')}`
}

/** `repr(str)`: single quotes, or double ones when the text holds a single quote and no double one. */
export function pythonReprText(text: string): string {
  if (!NEEDS_ESCAPE.test(text)) return `'${text}'`
  const body = text.replace(ESCAPED, escapeCharacter)
  if (!text.includes("'")) return `'${body}'`
  return text.includes('"') ? `'${body.replaceAll("'", "\\'")}'` : `"${body}"`
}

const DECIMAL_DIGIT = /\p{Nd}/u
const FOREIGN_DIGITS = /[^\P{Nd}0-9]/gu

const ONLY_ASCII = /^[\0-\x7f]*$/

/**
 * A text as `int()` and `float()` look at it: stripped, decimal digits of any script as ASCII ones. Unicode keeps the digits of
 * a script in runs of ten, so a digit's value is its distance from the start of its run.
 */
export function readNumberCharacters(text: string): string {
  // CPython leaves U+001C..001F alone in texts that are ASCII throughout, and strips them in others.
  if (ONLY_ASCII.test(text)) return strip(text, isAsciiSpace)
  return pythonStrip(text).replace(FOREIGN_DIGITS, (digit) => {
    const code = digit.codePointAt(0) ?? 0
    let start = code
    while (DECIMAL_DIGIT.test(String.fromCodePoint(start - 1))) start -= 1
    return String((code - start) % 10)
  })
}
