import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PyValue } from '../python-value.ts'
import { evaluateExpression } from './evaluate.ts'

const NAMES = new Map<string, PyValue>([
  ['a', 7n],
  ['b', 3.5],
  ['c', true],
  ['values', [7n, 3.5, true]],
])
const evaluate = (source: string) => evaluateExpression(source, NAMES, () => {})

function assertAll(cases: Readonly<Record<string, PyValue>>): void {
  for (const [source, value] of Object.entries(cases)) assert.deepEqual(evaluate(source), value, source)
}

test('ints stay ints and floats floats', () => {
  assertAll({
    'a + 1': 8n,
    'a + 1.0': 8,
    'a / 7': 1,
    'a // 2': 3n,
    '-a // 2': -4n,
    'a // -2.0': -4,
    '-a % 3': 2n,
    '2 ** 3': 8n,
    '2 ** -1': 0.5,
    'a * c': 7n,
    '~a & 0xff': 248n,
    '1 << 70 >> 68': 4n,
    'True & False': false,
  })
})

test('integers are exact, however large', () => {
  assertAll({
    '2 ** 64 - 1': 2n ** 64n - 1n,
    '9007199254740993 * 3': 27021597764222979n,
    '9007199254740993 / 3': 3002399751580331,
    'pow(10, 30) // 7': 10n ** 30n / 7n,
  })
})

test('precedence is that of Python', () => {
  assertAll({
    '-2 ** 2': -4n,
    '2 ** 3 ** 2': 512n,
    '2 + 3 * 4 - 1': 13n,
    'not a == 7': false,
    '1 < a < 10': true,
    '1 < a > 10': false,
    '1 if a > 3 else 2': 1n,
    '1 | 2 ^ 3 & 4': 3n,
    '(1 + 2) * 3': 9n,
  })
})

test('and and or give the operand that decided, and look no further', () => {
  assertAll({ '0 or b': 3.5, 'a and b': 3.5, '0 and 1 / 0': 0n, 'a or 1 / 0': 7n, 'None or False': false })
})

test('functions take what Python takes', () => {
  assertAll({
    'sum(values)': 11.5,
    'sum(a, b, 1)': 11.5,
    'min(values)': true,
    'max(a, b)': 7n,
    'round(2.5)': 2n,
    'round(b)': 4n,
    'round(2.675, 2)': 2.67,
    'round(1234, ndigits=-2)': 1200n,
    'ceil(b) + floor(b)': 7n,
    'abs(-a)': 7n,
    'sqrt(49)': 7,
    'log2(8) + log10(1000)': 6,
    // Python's own inexactness is kept, because `int` of it shows.
    'int(log(243, 3))': 4n,
    'log(8, 2)': 3,
    'log2(2 ** 2000)': 2000,
    'int(-3.9)': -3n,
    "int(' 12 ')": 12n,
    "float('1e3')": 1000,
  })
})

test('lists are indexed and sliced', () => {
  assertAll({ 'values[-1]': true, 'sum(values[:2])': 10.5, 'values[::-1][0]': true, '7 in values': true })
})

test('comments, line ends within brackets, and an assignment in front do not disturb', () => {
  assertAll({
    'a + 1 # one more': 8n,
    '(a\n + 1)': 8n,
    'x = a * 2': 14n,
    'a; b': 7n,
    '1_000 + .5': 1000.5,
    '0x1F': 31n,
  })
})

test('what Python refuses is refused under its names', () => {
  const refusals: readonly [string, string, RegExp][] = [
    ['a +', 'SyntaxError', /invalid syntax/],
    ['a b', 'SyntaxError', /invalid syntax \(<unknown>, line 1\)/],
    ['012', 'SyntaxError', /leading zeros/],
    ['z + 1', 'simpleeval.NameNotDefined', /'z' is not defined for expression 'z \+ 1'/],
    ['foo(1)', 'simpleeval.FunctionNotDefined', /Function 'foo' not defined/],
    ['[1, 2]', 'simpleeval.FeatureNotAvailable', /List is not available/],
    ['lambda: 1', 'simpleeval.FeatureNotAvailable', /Lambda is not available/],
    ['a.__class__', 'simpleeval.AttributeDoesNotExist', /__class__/],
    ['a / 0', 'ZeroDivisionError', /division by zero/],
    ['b // 0', 'ZeroDivisionError', /float floor division by zero/],
    ['sqrt(-1)', 'ValueError', /math domain error/],
    ['log(0)', 'ValueError', /math domain error/],
    ["a + 'x'", 'TypeError', /unsupported operand type\(s\) for \+: 'int' and 'str'/],
    ['values[9]', 'IndexError', /list index out of range/],
    ['10.0 ** 400', 'OverflowError', /out of range/],
    ['', 'simpleeval.InvalidExpression', /empty/],
  ]
  for (const [source, exceptionType, message] of refusals) {
    assert.throws(() => evaluate(source), { exceptionType, message }, source)
  }
})

test('work is bounded: huge powers, shifts, texts and nesting are refused at once', () => {
  const refusals: readonly [string, string][] = [
    ['9 ** 9999999', 'simpleeval.NumberTooHigh'],
    ['3000000 ** 3000000', 'simpleeval.NumberTooHigh'],
    ['pow(2, 4001)', 'ValueError'],
    ['1 << 10001', 'simpleeval.NumberTooHigh'],
    ["'x' * 1000000", 'simpleeval.IterableTooLong'],
    ['('.repeat(5000), 'SyntaxError'],
    [`${'-'.repeat(5000)}1`, 'SyntaxError'],
    [`1${'+1'.repeat(4000)}`, 'RecursionError'],
  ]
  for (const [source, exceptionType] of refusals) {
    assert.throws(() => evaluate(source), { exceptionType }, source.slice(0, 30))
  }
})
