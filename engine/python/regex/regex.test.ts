import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NodeError } from '../../node/node-error.ts'
import { RegexError, type RegexFlags } from './pattern-syntax.ts'
import { createRegex, type Regex } from './regex.ts'

const NO_FLAGS: RegexFlags = { ignoreCase: false, multiline: false, dotAll: false, verbose: false, ascii: false }

function regex(pattern: string, flags: Partial<RegexFlags> = {}): Regex {
  return createRegex(pattern, { flags: { ...NO_FLAGS, ...flags }, checkpoint() {} })
}

/** Every match with its groups, as `[whole, group 1, …]`. */
function all(pattern: string, text: string, flags: Partial<RegexFlags> = {}): (string | null)[][] {
  const compiled = regex(pattern, flags)
  return Array.from(compiled.matches(text), (match) =>
    Array.from({ length: compiled.groupCount + 1 }, (_, index) => match.group(index)),
  )
}

const whole = (pattern: string, text: string, flags: Partial<RegexFlags> = {}) =>
  all(pattern, text, flags).map(([match]) => match)

test('letters, digits and spaces are those of Unicode, unless the pattern asks for ASCII', () => {
  assert.deepEqual(whole('\\w+', 'naïve Ωmega ٣ a\u0301'), ['naïve', 'Ωmega', '٣', 'a'])
  assert.deepEqual(whole('(?a)\\w+', 'naïve'), ['na', 've'])
  assert.deepEqual(whole('\\d', '٣x7'), ['٣', '7'])
  assert.deepEqual(whole('\\s', 'a\u3000b\x1cc\ufeffd'), ['\u3000', '\x1c'])
  assert.deepEqual(whole('\\bé', 'é xé'), ['é'])
})

test('characters outside of the basic plane are one character', () => {
  assert.deepEqual(whole('^.$', '😀'), ['😀'])
  assert.deepEqual(whole('[😀-😂]', '😁x'), ['😁'])
  assert.equal(regex('.').replace('😀a', '<\\g<0>>', 0), '<😀><a>')
})

test('a dollar sign also matches before a last newline, and \\Z does not', () => {
  assert.deepEqual(whole('a$', 'a\n'), ['a'])
  assert.deepEqual(whole('a\\Z', 'a\n'), [])
  assert.deepEqual(whole('^a$', 'a\nb\na', { multiline: true }), ['a', 'a'])
})

test('a capture outlives later rounds of its loop, as in Python and unlike in JavaScript', () => {
  assert.deepEqual(all('(?:(a)|b)*', 'ab'), [
    ['ab', 'a'],
    ['', null],
  ])
  // A reference to a group that took no part matches nothing at all.
  assert.deepEqual(all('(a)?\\1b', 'b'), [])
})

test('an empty match may follow a longer one, and a longer one an empty one at the same position', () => {
  assert.equal(regex('x*').replace('abxd', '-', 0), '-a-b--d-')
  assert.deepEqual(whole('\\b|\\w+', 'ab'), ['', 'ab', ''])
})

test('case is ignored by Unicode rules', () => {
  assert.deepEqual(whole('straSSe', 'STRASSE', { ignoreCase: true }), ['STRASSE'])
  assert.deepEqual(whole('k', '\u212a', { ignoreCase: true }), ['\u212a'])
  assert.deepEqual(whole('[a-z]', 'ſ', { ignoreCase: true }), ['ſ'])
  assert.deepEqual(whole('[^a-z]', 'Q1', { ignoreCase: true }), ['1'])
  assert.deepEqual(whole('(a)\\1', 'aA', { ignoreCase: true }), ['aA'])
})

test('flags can be set for the whole pattern or for a group', () => {
  assert.deepEqual(whole('(?i)abc', 'ABC'), ['ABC'])
  assert.deepEqual(whole('a(?i:b)c', 'aBc aBC'), ['aBc'])
  assert.deepEqual(whole('a(?-i:b)', 'AB Ab', { ignoreCase: true }), ['Ab'])
  assert.deepEqual(whole('(?x) a  b # comment\n c', 'abc'), ['abc'])
})

test('look-around, atomic groups, possessive repeats and conditions work', () => {
  assert.deepEqual(whole('(?<=\\$)\\d+(?!\\d|%)', '$12 13 $14%'), ['12'])
  assert.deepEqual(whole('(?>a+)ab', 'aaab'), [])
  assert.deepEqual(whole('a++b', 'aab'), ['aab'])
  assert.deepEqual(whole('(<)?a(?(1)>|!)', '<a> a! <a!'), ['<a>', 'a!', 'a!'])
  assert.deepEqual(all('(?=(\\w+))\\1:', 'abc:'), [['abc:', 'abc']])
})

test('replacements name groups by number and by name; what took no part is empty', () => {
  assert.equal(regex('(\\w+) (\\w+)').replace('John Smith', '\\2 \\1', 0), 'Smith John')
  assert.equal(regex('(?P<k>\\w)=(?P<v>\\d)').replace('x=1', '\\g<v>\\g<k>\\g<1>\\n$1', 0), '1xx\n$1')
  assert.equal(regex('(a)|b').replace('ab', '[\\1]', 0), '[a][]')
  assert.equal(regex('a').replace('aaa', 'b', 2), 'bba')
})

test('wrong patterns are refused in the words of Python, with the position', () => {
  const refusals: readonly [string, string][] = [
    ['(', 'missing ), unterminated subpattern at position 0'],
    [')', 'unbalanced parenthesis at position 0'],
    ['*a', 'nothing to repeat at position 0'],
    ['a**', 'multiple repeat at position 2'],
    ['[a', 'unterminated character set at position 0'],
    ['[z-a]', 'bad character range z-a at position 1'],
    ['\\q', 'bad escape \\q at position 0'],
    ['\\2', 'invalid group reference 2 at position 1'],
    ['a(?i)b', 'global flags not at the start of the expression at position 1'],
    ['(?<=a+)b', 'look-behind requires fixed-width pattern'],
    ['(?P<1>a)', "bad character in group name '1' at position 4"],
    ['a{2,1}', 'min repeat greater than max repeat at position 2'],
    ['x\n(', 'missing ), unterminated subpattern at position 2 (line 2, column 1)'],
  ]
  for (const [pattern, message] of refusals) {
    assert.throws(
      () => regex(pattern),
      (error: Error) => error instanceof RegexError && error.message === message,
      pattern,
    )
  }
})

test('wrong replacements are refused', () => {
  assert.throws(() => regex('a').replace('a', '\\1', 0), /invalid group reference 1 at position 1/)
  assert.throws(() => regex('a').replace('a', '\\g<x>', 0), { exceptionType: 'IndexError' })
  assert.throws(() => regex('a').replace('a', '\\q', 0), /bad escape \\q at position 0/)
})

test('a long text does not overflow any stack', () => {
  const text = 'ab'.repeat(200_000)
  assert.deepEqual(whole('(?:a|b)*', text), [text, ''])
  assert.deepEqual(whole('(?:ab)*?$', text), [text, ''])
})

test('a pattern nested too deep is refused, not recursed into', () => {
  assert.throws(
    () => regex('('.repeat(10_000)),
    (error: Error) => error instanceof NodeError && error.exceptionType === 'RecursionError',
  )
})

test('matching asks again and again whether to go on', () => {
  class Stop extends Error {}
  let asked = 0
  const endless = createRegex('(a+)+$', {
    flags: NO_FLAGS,
    checkpoint() {
      asked += 1
      if (asked === 3) throw new Stop()
    },
  })
  assert.throws(() => endless.replace(`${'a'.repeat(50)}!`, '', 0), Stop)
})

test('a replacement that would not fit into memory is refused before it is made', () => {
  const big = 'x'.repeat(2 ** 20)
  assert.throws(() => regex('').replace('y'.repeat(1000), big, 0), { exceptionType: 'MemoryError' })
})
