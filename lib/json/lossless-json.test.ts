import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { NumberText, parseLosslessJson, stringifyLosslessJson } from './lossless-json.ts'
import { readJson } from './read-json.ts'

const asDouble = (text: string) => readJson(text, Number)

test('any value that JSON.stringify writes reads as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(0, 1, '\t', ' \n'), (value, space) => {
      const text = JSON.stringify(value, null, space)
      assert.deepEqual(asDouble(text)?.value, JSON.parse(text))
      assert.deepEqual(stringifyLosslessJson(parseLosslessJson(text)), JSON.stringify(JSON.parse(text)))
    }),
    { numRuns: 500 },
  )
})

test('a malformed text is refused exactly when JSON.parse refuses it', () => {
  const isJson = (text: string) => {
    try {
      JSON.parse(text)
      return true
    } catch {
      return false
    }
  }
  const damaged = fc
    .tuple(
      fc.json({ maxDepth: 4 }),
      fc.nat(),
      fc.nat({ max: 2 }),
      fc.constantFrom(...'{}[],:"\\0-.eE+ \n\tutrue\u0001'),
    )
    .map(([text, at, cut, put]) => {
      const position = at % (text.length + 1)
      return text.slice(0, position) + put + text.slice(position + cut)
    })
  fc.assert(
    fc.property(damaged, (text) => assert.equal(asDouble(text) !== null, isJson(text), text)),
    { numRuns: 5_000 },
  )
})

test('any number keeps every digit and its form, alone and among others', () => {
  const digits = fc.stringMatching(/^\d{1,25}$/)
  const whole = digits.map((text) => text.replace(/^0+(?=\d)/, ''))
  const exponent = fc.stringMatching(/^[eE][+-]?\d{1,3}$/)
  const number = fc
    .tuple(fc.constantFrom('', '-'), whole, fc.option(digits), fc.option(exponent))
    .map(([sign, before, behind, power]) => `${sign}${before}${behind === null ? '' : `.${behind}`}${power ?? ''}`)
  fc.assert(
    fc.property(number, (text) => {
      for (const document of [text, `[${text}]`, `{"a":${text},"b":1}`])
        assert.equal(stringifyLosslessJson(parseLosslessJson(document)), document)
    }),
    { numRuns: 5_000, seed: 5 },
  )
  for (const text of ['123456789.12345678901', '0.0000001', '-0.00000012', '1234567890123456.5'])
    assert.equal(stringifyLosslessJson(parseLosslessJson(`[ ${text}]`)), `[${text}]`)
})

test('numbers keep their digits, and a malformed text names its fault', () => {
  const text = '{"seed":18446744073709551615,"cfg":1.0,"tiny":1e-7,"zero":-0,"plain":7,"half":0.5}'
  const value = parseLosslessJson(text) as Record<string, unknown>
  assert.equal(value['seed'], 18446744073709551615n)
  assert.ok(value['cfg'] instanceof NumberText)
  assert.ok(value['zero'] instanceof NumberText)
  assert.equal(value['plain'], 7)
  assert.equal(stringifyLosslessJson(parseLosslessJson(text)), text)
  for (const bad of [
    '{"a":1.0,}',
    '[1.0',
    '1.0 1',
    '{"a" 1.0}',
    '[1.00"]',
    '["\\x",1.0]',
    '["a\nb",1.0]',
    '[01.0]',
    '',
  ])
    assert.throws(() => parseLosslessJson(bad), SyntaxError, bad)
})

test('a member called __proto__ is an ordinary member', () => {
  const value = parseLosslessJson('{"__proto__":{"polluted":1.0},"a":{"__proto__":1.0}}') as Record<string, unknown>
  assert.deepEqual(Object.keys(value), ['__proto__', 'a'])
  assert.equal(Object.getPrototypeOf(value), Object.prototype)
  assert.equal(stringifyLosslessJson(value as never), '{"__proto__":{"polluted":1.0},"a":{"__proto__":1.0}}')
})

test('a string of many megabytes with escapes is read', () => {
  const text = JSON.stringify(['a\n"\\'.repeat(2_000_000), 'b\\'])
  assert.deepEqual(asDouble(text)?.value, JSON.parse(text))
})

test('a number keeps its digits wherever it stands, also beside ids that look like numbers', () => {
  for (const number of ['18446744073709551615', '-0', '1.0', '-2.50', '1e5', '3.5E-7', '0.12345678901234567'])
    for (const text of [number, `[${number}]`, `{"id":"0-0e1.0","a":${number}}`, `[7,${number},"5e6f"]`])
      assert.equal(stringifyLosslessJson(parseLosslessJson(text)), text)
})
