/** Replacement texts: `\1`, `\g<1>`, `\g<name>` and the escapes for characters. A backslash before a mark stays. */
import { pythonReprText } from '../../../lib/python/text.ts'
import { NodeError } from '../../node/node-error.ts'
import { characterEscape, DIGITS, OCTAL_DIGITS, octalCode } from './escapes.ts'
import { isIdentifier } from './parse-pattern.ts'
import { PatternSource } from './pattern-source.ts'

/** Text, or the number of a group. */
type TemplatePart = string | number

interface Groups {
  readonly groupCount: number
  readonly groupNames: ReadonlyMap<string, number>
}

export function parseTemplate(replacement: string, groups: Groups): readonly TemplatePart[] {
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
