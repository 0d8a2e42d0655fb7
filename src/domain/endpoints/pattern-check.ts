/**
 * Which regular expressions an author may give an input. Callers choose the text that is matched, and the matcher tries again from
 * every repetition: so how often it could try, at the longest text, must be bounded.
 */

const MAX_PATTERN = 200
const MAX_TRIES = 1_000_000

interface Level {
  /** Something in it repeats, or it has alternatives. */
  isVaried: boolean
}

const QUANTIFIER = /^(?:[*+?]|\{(\d{1,6})(,(\d{0,6}))?\})\??/

/** What is wrong, as the rest of a sentence that begins with the field; null: nothing. */
export function findPatternFault(pattern: string, maxLength: number): string | null {
  if (pattern.length > MAX_PATTERN) return `must have at most ${MAX_PATTERN} characters`
  try {
    toMatcher(pattern)
  } catch {
    return 'must be a regular expression'
  }
  const levels: Level[] = [{ isVaried: false }]
  let tries = 1
  // The group that has just ended, to which a repetition would apply.
  let ended: Level | null = null
  for (let at = 0; at < pattern.length; ) {
    const rest = pattern.slice(at)
    const repeated = QUANTIFIER.exec(rest)
    const top = levels[levels.length - 1]
    if (repeated !== null) {
      const most = mostOf(repeated, maxLength)
      if (ended?.isVaried === true && most > 1)
        return 'must not repeat a group that has repetitions or alternatives of its own'
      if (!/^\{\d+\}/.test(repeated[0])) {
        tries *= Math.max(2, most)
        top.isVaried = true
      }
      at += repeated[0].length
      ended = null
      continue
    }
    ended = null
    if (/^\\(?:[1-9]|k<)/.test(rest) || /^\(\?(?!:)/.test(rest)) {
      return 'must not refer to groups, look ahead or look behind'
    }
    if (rest.startsWith('(')) levels.push({ isVaried: false })
    else if (rest.startsWith(')')) {
      ended = levels.pop() ?? null
      const outer = levels[levels.length - 1]
      if (ended !== null && outer !== undefined) outer.isVaried ||= ended.isVaried
    } else if (rest.startsWith('|')) {
      top.isVaried = true
      tries *= 2
    }
    at += lengthOfAtom(rest)
  }
  if (tries <= MAX_TRIES) return null
  return `could take too long for texts of ${maxLength} characters: use fewer open repetitions, or a smaller max_length`
}

/** Of the whole text. */
export function toMatcher(pattern: string): RegExp {
  return new RegExp(`^(?:${pattern})$`, 'u')
}

function mostOf([sign, least, range, most]: RegExpExecArray, maxLength: number): number {
  if (sign.startsWith('?')) return 1
  if (least === undefined) return maxLength
  if (range === undefined) return Number(least)
  return Math.min(most === undefined || most === '' ? maxLength : Number(most), maxLength)
}

/** A class in brackets, an escape or one character. */
function lengthOfAtom(rest: string): number {
  if (rest.startsWith('(?:')) return 3
  if (rest.startsWith('[')) {
    const end = /^\[(?:\\.|[^\]\\])*\]/s.exec(rest)
    return end === null ? 1 : end[0].length
  }
  const escaped = /^\\(?:u\{[^}]*\}|[pP]\{[^}]*\}|u.{4}|x..|c.|.)/s.exec(rest)
  return escaped === null ? 1 : escaped[0].length
}
