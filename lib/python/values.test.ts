import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type JsonValue, NumberText, parseLosslessJson } from '../json/lossless-json.ts'
import { pythonReprText, pythonStrip } from './text.ts'
import {
  floorDividePython,
  formatPythonNumber,
  fromPythonNumber,
  moduloPython,
  PythonError,
  type PythonNumber,
  pythonBool,
  pythonEquals,
  pythonFloat,
  pythonInt,
  pythonJsonDumps,
  pythonStr,
  pythonTypeName,
  roundPython,
  roundPythonTo,
  toPythonNumber,
} from './values.ts'

function raised(type: string, message: string) {
  return (error: unknown) => error instanceof PythonError && error.type === type && error.message === message
}

test('JSON numbers are ints or floats by how they are written', () => {
  const types = parseLosslessJson('[1, 1.0, 0.5, -0, -0.0, 1e3, 1e+21, 1000000000000000000000, 36893488147419103000]')
  assert.deepEqual((types as JsonValue[]).map(pythonTypeName), [
    'int',
    'float',
    'float',
    'int',
    'float',
    'float',
    'float',
    'int',
    'int',
  ])
  // The printed digits are what was written, although the double nearest to them is another number.
  assert.equal(toPythonNumber(parseLosslessJson('36893488147419103000')), 36893488147419103000n)
})

test('int() truncates numbers and reads texts with spaces, signs, underscores and digits of any script', () => {
  const cases: [JsonValue, bigint][] = [
    [52.9, 52n],
    [-52.9, -52n],
    [true, 1n],
    [' +1_000\u3000', 1000n],
    ['١٢', 12n],
    ['𝟓𝟗', 59n],
    [18446744073709551615n, 18446744073709551615n],
    [new NumberText('1e3'), 1000n],
  ]
  for (const [value, expected] of cases) assert.equal(pythonInt(value), expected)
  assert.throws(() => pythonInt('52.9'), raised('ValueError', "invalid literal for int() with base 10: '52.9'"))
  assert.throws(
    () => pythonInt(null),
    raised('TypeError', "int() argument must be a string, a bytes-like object or a real number, not 'NoneType'"),
  )
  assert.throws(() => pythonInt('1__0'), PythonError)
  assert.throws(() => pythonInt('9'.repeat(4301)), /Exceeds the limit \(4300 digits\)/)
})

test('float() reads exponents, infinities and underscores', () => {
  const cases: [JsonValue, number][] = [
    ['1e3', 1000],
    [' -Infinity ', -Infinity],
    ['1_0.5', 10.5],
    ['.5', 0.5],
    [7n, 7],
  ]
  for (const [value, expected] of cases) assert.equal(pythonFloat(value), expected)
  assert.ok(Number.isNaN(pythonFloat('nan')))
  assert.throws(() => pythonFloat('x'), raised('ValueError', "could not convert string to float: 'x'"))
  assert.throws(() => pythonFloat('0x10'), PythonError)
  assert.throws(() => pythonFloat(10n ** 400n), raised('OverflowError', 'int too large to convert to float'))
})

test('long texts that are no numbers are refused', () => {
  for (const text of [`1${' '.repeat(500_000)}x`, `${'1'.repeat(500_000)}x`, `${'1_'.repeat(250_000)}x`]) {
    assert.throws(() => pythonInt(text), PythonError)
    assert.throws(() => pythonFloat(text), PythonError)
  }
})

test('bool() is false for what is empty and true for every other text', () => {
  for (const value of ['', 0, new NumberText('0.0'), new NumberText('-0'), 0n, null, [], {}, false]) {
    assert.equal(pythonBool(value as JsonValue), false)
  }
  for (const value of ['false', '0', 0.1, [0], { a: 1 }, true]) assert.equal(pythonBool(value as JsonValue), true)
})

test('str() prints floats with the shortest digits and lists with quotes', () => {
  const cases: [JsonValue, string][] = [
    [1e-7, '1e-07'],
    [new NumberText('1e16'), '1e+16'],
    [1 / 3, '0.3333333333333333'],
    [new NumberText('4.0'), '4.0'],
    [0.0001, '0.0001'],
    [true, 'True'],
    [null, 'None'],
    [[1, 'x', null, true, 1.5], "[1, 'x', None, True, 1.5]"],
    [{ a: "it's" }, "{'a': \"it's\"}"],
    ['plain', 'plain'],
    [18446744073709551615n, '18446744073709551615'],
  ]
  for (const [value, expected] of cases) assert.equal(pythonStr(value), expected)
})

test('repr() escapes what cannot be printed', () => {
  assert.equal(pythonReprText('a\n\t\\\x01\u200b\u{e0001}é'), "'a\\n\\t\\\\\\x01\\u200b\\U000e0001é'")
  assert.equal(pythonReprText(`both ' and "`), `'both \\' and "'`)
})

test('strip() takes what Python calls white space', () => {
  assert.equal(pythonStrip('\u00a0\u3000\x1c x \ufeff'), 'x \ufeff')
})

test('round() goes to the even neighbour and decides on the exact value', () => {
  const halves: [PythonNumber, bigint][] = [
    [34.5, 34n],
    [2.5, 2n],
    [3.5, 4n],
    [-0.5, 0n],
    [7n, 7n],
    [0.49999999999999994, 0n],
  ]
  for (const [value, expected] of halves) assert.equal(roundPython(value), expected)
  assert.equal(roundPythonTo(2.675, 2), 2.67)
  assert.equal(roundPythonTo(0.125, 2), 0.12)
  assert.equal(roundPythonTo(1250n, -2), 1200n)
  assert.throws(() => roundPython(Number.NaN), raised('ValueError', 'cannot convert float NaN to integer'))
})

test('floor division and modulo take the sign of the divisor', () => {
  assert.equal(floorDividePython(-7n, 2n), -4n)
  assert.equal(moduloPython(-7n, 2n), 1n)
  assert.equal(floorDividePython(7, -2n), -4)
  assert.equal(moduloPython(7.5, -2n), -0.5)
  assert.equal(formatPythonNumber(moduloPython(-4, 2)), '0.0')
  assert.throws(() => moduloPython(1n, 0n), raised('ZeroDivisionError', 'integer modulo by zero'))
})

test('equality crosses types as in Python', () => {
  assert.ok(pythonEquals(1, new NumberText('1.0')))
  assert.ok(pythonEquals(true, 1))
  assert.ok(pythonEquals([1, { a: false }], [true, { a: 0 }]))
  assert.ok(!pythonEquals('1', 1))
  assert.ok(!pythonEquals(9007199254740993n, new NumberText('9007199254740992.0')))
  assert.ok(!pythonEquals({ a: 1 }, { b: 1 }))
})

test('json.dumps uses its separators, ASCII escapes and floats', () => {
  const value: JsonValue = { a: [1, new NumberText('2.0'), null, true], 'é😀': 18446744073709551615n, e: [], o: {} }
  assert.equal(
    pythonJsonDumps(value),
    '{"a": [1, 2.0, null, true], "\\u00e9\\ud83d\\ude00": 18446744073709551615, "e": [], "o": {}}',
  )
  assert.equal(
    pythonJsonDumps({ a: [1, { b: 2 }] }, { indent: 2 }),
    '{\n  "a": [\n    1,\n    {\n      "b": 2\n    }\n  ]\n}',
  )
})

test('a Python number keeps its type on the way into JSON', () => {
  assert.deepEqual(fromPythonNumber(4), new NumberText('4.0'))
  assert.equal(fromPythonNumber(4n), 4)
  assert.equal(fromPythonNumber(2n ** 64n), 2n ** 64n)
  assert.equal(pythonFloat(fromPythonNumber(-Infinity)), -Infinity)
  assert.ok(Number.isNaN(pythonFloat(fromPythonNumber(Number.NaN))))
})
