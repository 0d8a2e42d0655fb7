import assert from 'node:assert/strict'
import { test } from 'node:test'
import { dumpPyJson, readPyJson } from './python-json.ts'
import { pyStr } from './python-value.ts'

const shown = (text: string) => {
  const value = readPyJson(text)
  return value === undefined ? undefined : pyStr(value)
}

test('JSON reads as Python reads it', () => {
  assert.equal(shown('{"b": 1.0, "1": [true, null, "x"], "b": 2}'), "{'b': 2, '1': [True, None, 'x']}")
  assert.equal(shown('18446744073709551616'), '18446744073709551616')
  assert.equal(shown('[NaN, -Infinity, 1e400, -0, -0.0, 1E2]'), '[nan, -inf, inf, 0, -0.0, 100.0]')
  assert.equal(shown('"\\u00e9\\ud83d\\ude00\\n"'), 'é😀\n')
  assert.equal(shown(' \t\r\n[ ] '), '[]')
})

test('what is no JSON is told apart from a null', () => {
  for (const text of [
    '',
    '{',
    "{'a': 1}",
    '[1,]',
    '01',
    '+1',
    '1 2',
    '"a\nb"',
    '\ufeff1',
    'nul',
    '.5',
    '"\\x"',
    '{"a" 1}',
  ]) {
    assert.equal(readPyJson(text), undefined, text)
  }
  assert.equal(readPyJson('null'), null)
})

test('deep nesting is refused, not recursed into', () => {
  assert.throws(() => readPyJson('['.repeat(100_000)), { exceptionType: 'RecursionError' })
})

test('JSON is written with the separators of Python and readable characters', () => {
  const value = new Map([
    ['é', [1n, 1, 'a"\u0001']],
    ['empty', []],
  ])
  assert.equal(dumpPyJson(value, null), '{"é": [1, 1.0, "a\\"\\u0001"], "empty": []}')
  assert.equal(dumpPyJson(value, 2), '{\n  "é": [\n    1,\n    1.0,\n    "a\\"\\u0001"\n  ],\n  "empty": []\n}')
  assert.equal(dumpPyJson('\\ud800 \ud800', null), '"\\\\ud800 \ud800"')
})
