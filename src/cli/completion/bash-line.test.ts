/** Words of others on a command line of bash: whatever they hold, they stay the words that they are. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { test } from 'node:test'
import fc from 'fast-check'
import { splitLine, toInserted } from './bash-line.ts'

const BREAKS = ' \t\n"\'@><=;|&(:'
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '$(evil)',
        '`evil`',
        '; evil',
        '"',
        "'",
        '\\',
        '!',
        '*',
        '~',
        '#',
        '& ',
        '>',
        '=',
        ':',
        '@',
        '😀',
        'ü',
      ),
      fc.string({ unit: 'grapheme', maxLength: 4 }),
    ),
    { minLength: 1, maxLength: 5 },
  )
  .map((parts) => parts.join('').replaceAll(/\p{Cc}/gu, ''))
  .filter((word) => word !== '')

test('what is inserted is read by bash as the very word', () => {
  const words = fc.sample(hostile, 200)
  const cases = words.flatMap((word) =>
    ['', '"', "'"].flatMap((quote) => {
      const inserted = toInserted(word, splitLine(`atelier run card --tone ${quote}`), BREAKS)
      return inserted === null ? [] : [{ word, typed: quote + inserted + quote }]
    }),
  )
  assert.ok(cases.length >= words.length)
  const script = `set -f\n${cases.map(({ typed }) => `printf '%s\\n' ${typed}`).join('\n')}`
  const { stdout, status } = spawnSync('bash', ['-c', script], { encoding: 'utf8', env: { LC_ALL: 'C.UTF-8' } })
  assert.equal(status, 0)
  assert.deepEqual(
    stdout.split('\n').slice(0, -1),
    cases.map(({ word }) => word),
  )
})

test('only the part behind the last sign that begins a word is inserted', () => {
  const rest = (line: string, word: string) => toInserted(word, splitLine(line), BREAKS)
  assert.equal(rest('atelier run card@s', 'card@stable'), 'stable')
  assert.equal(rest('atelier run card --align=', '--align=left'), 'left')
  assert.equal(rest('atelier run card -i tone=a:b', 'tone=a:bc'), 'bc')
  assert.equal(rest('atelier run card --tone="#f', '--tone=#ff0000'), '#ff0000')
  assert.equal(toInserted('card@stable', splitLine('atelier run card@s'), ' '), 'card@stable')
})

test('a line is split as bash splits it', () => {
  assert.deepEqual(splitLine(`atelier run "a b" c\\ d 'e"f' g`).words, ['atelier', 'run', 'a b', 'c d', 'e"f', 'g'])
  assert.deepEqual(splitLine('atelier run ').words, ['atelier', 'run', ''])
  assert.deepEqual([splitLine("run 'a b").words, splitLine("run 'a b").quote], [['run', 'a b'], "'"])
})
