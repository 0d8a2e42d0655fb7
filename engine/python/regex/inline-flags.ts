/** `(?i)`, `(?im-s:…)`: the letters of inline flags. */
import type { PatternSource } from './pattern-source.ts'
import type { RegexFlags } from './pattern-syntax.ts'

const LETTERS: Readonly<Record<string, keyof RegexFlags | 'unicode' | 'locale'>> = {
  i: 'ignoreCase',
  m: 'multiline',
  s: 'dotAll',
  x: 'verbose',
  a: 'ascii',
  u: 'unicode',
  L: 'locale',
}
const TYPE_LETTERS = 'auL'

interface InlineFlags {
  /** The whole pattern, or the group that begins here. */
  readonly appliesTo: 'pattern' | 'group'
  readonly on: string
  readonly off: string
}

export function isFlagLetter(token: string): boolean {
  return Object.hasOwn(LETTERS, token)
}

const isLetter = (token: string) => /^\p{L}$/u.test(token)

function takeFlag(source: PatternSource, token: string | null, missing: string): string {
  if (token === null) throw source.error(missing)
  if (isFlagLetter(token)) return token
  throw source.error(isLetter(token) ? 'unknown flag' : missing, Array.from(token).length)
}

function checkOn(source: PatternSource, letter: string, before: string): void {
  if (letter === 'L') throw source.error("bad inline flags: cannot use 'L' flag with a str pattern")
  if (TYPE_LETTERS.includes(letter) && [...before].some((other) => other !== letter && TYPE_LETTERS.includes(other))) {
    throw source.error("bad inline flags: flags 'a', 'u' and 'L' are incompatible")
  }
}

/** Reads on after `(?` and `first`. */
export function readInlineFlags(source: PatternSource, first: string): InlineFlags {
  let on = ''
  let token: string | null = first
  if (token !== '-') {
    do {
      const letter = takeFlag(source, token, 'missing -, : or )')
      checkOn(source, letter, on)
      on += letter
      token = source.get()
    } while (token !== ')' && token !== '-' && token !== ':')
  }
  if (token === ')') return { appliesTo: 'pattern', on, off: '' }
  const off = token === '-' ? readOff(source) : ''
  if ([...on].some((letter) => off.includes(letter))) throw source.error('bad inline flags: flag turned on and off', 1)
  return { appliesTo: 'group', on, off }
}

function readOff(source: PatternSource): string {
  let off = ''
  let token = source.get()
  do {
    const letter = takeFlag(source, token, off === '' ? 'missing flag' : 'missing :')
    if (TYPE_LETTERS.includes(letter)) throw source.error("bad inline flags: cannot turn off flags 'a', 'u' and 'L'")
    off += letter
    token = source.get()
  } while (token !== ':')
  return off
}

export function applyFlags(flags: RegexFlags, { on, off }: InlineFlags): RegexFlags {
  const changed: Record<string, boolean> = {}
  for (const letter of on) {
    if (letter === 'u') changed.ascii = false
    else changed[LETTERS[letter]] = true
  }
  for (const letter of off) changed[LETTERS[letter]] = false
  return { ...flags, ...changed }
}
