/** Python's `re` on whole texts: search, all matches, replacement. */
import { pythonReprText } from '../../../lib/python/text.ts'
import { NodeError } from '../../node/node-error.ts'
import { refuseLongText } from '../text-limit.ts'
import { compileRegex, type Program } from './compile.ts'
import { Matcher } from './matcher.ts'
import { isIdentifier, parseRegex } from './parse-pattern.ts'
import { characterEscape, DIGITS, OCTAL_DIGITS, octalCode, PatternSource } from './pattern-source.ts'
import type { RegexFlags } from './pattern-syntax.ts'

// Replacement texts: `\1`, `\g<1>`, `\g<name>` and the escapes for characters. A backslash before a mark stays.

/** Text, or the number of a group. */
type TemplatePart = string | number

interface Groups {
  readonly groupCount: number
  readonly groupNames: ReadonlyMap<string, number>
}

function parseTemplate(replacement: string, groups: Groups): readonly TemplatePart[] {
  const source = new PatternSource(replacement)
  const parts: TemplatePart[] = []
  for (let token = source.get(); token !== null; token = source.get()) {
    parts.push(token.length > 1 && token.startsWith('\\') ? readEscape(source, token, groups) : token)
  }
  return joinTexts(parts)
}

function joinTexts(parts: readonly TemplatePart[]): TemplatePart[] {
  const joined: TemplatePart[] = []
  let texts: string[] = []
  const flush = () => {
    if (texts.length > 0) joined.push(texts.join(''))
    texts = []
  }
  for (const part of parts) {
    if (typeof part === 'string') texts.push(part)
    else {
      flush()
      joined.push(part)
    }
  }
  flush()
  return joined
}

function readEscape(source: PatternSource, token: string, groups: Groups): TemplatePart {
  const letter = token.slice(1)
  if (letter === 'g') return readNamedGroup(source, groups)
  if (letter === '0') {
    return String.fromCodePoint(Number.parseInt(letter + source.getWhile(2, OCTAL_DIGITS), 8))
  }
  if (DIGITS.includes(letter)) return readNumber(source, letter, groups)
  const code = characterEscape(letter)
  if (code !== null) return String.fromCodePoint(code)
  if (/^[a-zA-Z]$/.test(letter)) throw source.error(`bad escape ${token}`, token.length)
  return token
}

function readNumber(source: PatternSource, first: string, groups: Groups): TemplatePart {
  const second = source.getWhile(1, DIGITS)
  const digits = first + second
  if (second !== '' && OCTAL_DIGITS.includes(first) && OCTAL_DIGITS.includes(second)) {
    const third = source.getWhile(1, OCTAL_DIGITS)
    if (third !== '') return String.fromCodePoint(octalCode(source, digits + third))
  }
  return checkGroup(source, Number(digits), { groups, back: digits.length })
}

function checkGroup(source: PatternSource, group: number, { groups, back }: { groups: Groups; back: number }): number {
  if (group > groups.groupCount) throw source.error(`invalid group reference ${group}`, back)
  return group
}

function readNamedGroup(source: PatternSource, groups: Groups): number {
  if (!source.match('<')) throw source.error('missing <')
  const name = source.getUntil('>', 'group name')
  const back = Array.from(name).length + 1
  if (isIdentifier(name)) {
    const group = groups.groupNames.get(name)
    if (group === undefined) throw new NodeError('IndexError', `unknown group name ${pythonReprText(name)}`)
    return group
  }
  if (!/^\d+$/.test(name)) throw source.error(`bad character in group name ${pythonReprText(name)}`, back)
  return checkGroup(source, Number(name), { groups, back })
}

export interface RegexMatch {
  readonly start: number
  readonly end: number
  /** null when the group took no part; group 0 is the whole match. */
  group(index: number): string | null
}

export interface Regex {
  readonly groupCount: number
  readonly groupNames: ReadonlyMap<string, number>
  /** Matches from left to right, as `re.finditer` gives them. */
  matches(text: string): IterableIterator<RegexMatch>
  /** `re.sub(replacement, text, count)`; 0 replaces all. */
  replace(text: string, replacement: string, count: number): string
}

interface RegexOptions {
  readonly flags: RegexFlags
  /** Called again and again while matching; throws to stop it. */
  checkpoint(): void
}

/** Throws RegexError when the pattern is wrong. */
export function createRegex(pattern: string, { flags, checkpoint }: RegexOptions): Regex {
  const program = compileRegex(parseRegex(pattern, flags))
  const { groupCount, groupNames } = program
  const matches = (text: string) => findAll(program, toCodes(text), checkpoint)
  return {
    groupCount,
    groupNames,
    matches,
    replace: (text, replacement, count) =>
      replaceAll({ groupCount, groupNames, matches }, { text, replacement, count }),
  }
}

function toCodes(text: string): Int32Array {
  const codes = new Int32Array(text.length)
  let length = 0
  for (let at = 0; at < text.length; length += 1) {
    const code = text.codePointAt(at) ?? 0
    codes[length] = code
    at += code > 0xffff ? 2 : 1
  }
  return codes.subarray(0, length)
}

const CHUNK = 8192

function fromCodes(codes: Int32Array, start: number, end: number): string {
  const parts: string[] = []
  for (let at = start; at < end; at += CHUNK)
    parts.push(String.fromCodePoint(...codes.subarray(at, Math.min(end, at + CHUNK))))
  return parts.join('')
}

function toMatch(
  codes: Int32Array,
  registers: Int32Array,
  { start, end }: Pick<RegexMatch, 'start' | 'end'>,
): RegexMatch {
  const captured = registers.slice()
  return {
    start,
    end,
    group(index) {
      if (index === 0) return fromCodes(codes, start, end)
      const [from, to] = [captured[2 * index], captured[2 * index + 1]]
      return from < 0 || to < 0 ? null : fromCodes(codes, from, to)
    },
  }
}

/** An empty match is not followed by another at the same position, but by a longer one if there is one. */
function* findAll(program: Program, codes: Int32Array, checkpoint: () => void): IterableIterator<RegexMatch> {
  const matcher = new Matcher(program, codes, checkpoint)
  const { first } = program
  let mustAdvance = false
  for (let start = 0; start <= codes.length; start += 1) {
    if (first !== null) {
      while (start < codes.length && !first(codes[start])) start += 1
      if (start === codes.length) return
    }
    const end = matcher.matchAt(start, mustAdvance)
    mustAdvance = false
    if (end === -1) continue
    yield toMatch(codes, matcher.registers, { start, end })
    mustAdvance = end === start
    start = end - 1
  }
}

type Searchable = Pick<Regex, 'groupCount' | 'groupNames' | 'matches'>

function replaceAll(
  regex: Searchable,
  { text, replacement, count }: { text: string; replacement: string; count: number },
): string {
  const template = parseTemplate(replacement, regex)
  const codes = toCodes(text)
  const parts: string[] = []
  let length = 0
  const append = (part: string) => {
    length += part.length
    refuseLongText(length)
    parts.push(part)
  }
  let [done, replaced] = [0, 0]
  for (const match of regex.matches(text)) {
    append(fromCodes(codes, done, match.start))
    // A group that took no part is replaced by nothing.
    for (const piece of template) append(typeof piece === 'string' ? piece : (match.group(piece) ?? ''))
    done = match.end
    replaced += 1
    if (replaced === count) break
  }
  append(fromCodes(codes, done, codes.length))
  return parts.join('')
}
