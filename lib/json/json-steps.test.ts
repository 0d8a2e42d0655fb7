import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { finishNow, type Work } from '../waiting/turns.ts'
import { type JsonValue, parseLosslessJson, stringifyLosslessJson } from './lossless-json.ts'
import { type JsonFault, JsonLimitError, type JsonLimits, readJsonSteps } from './read-json-steps.ts'
import { writeJsonSteps } from './write-json-steps.ts'

const WIDE: JsonLimits = { maxDepth: 200, maxValues: 1_000_000, maxMembers: 1_000_000, maxLongDigits: 100_000 }

function parse(text: string, limits: JsonLimits = WIDE): unknown {
  return finishNow(readJsonSteps(Buffer.from(text), { readNumber: Number, limits }))
}

function countSteps(work: Work<unknown>): number {
  let steps = 1
  while (work.next().done !== true) steps++
  return steps
}

function isRefused(text: string): boolean {
  try {
    parse(text)
    return false
  } catch (error) {
    assert.ok(error instanceof SyntaxError)
    return true
  }
}

test('reads what JSON.parse reads and writes what JSON.stringify writes', () => {
  fc.assert(
    fc.property(fc.jsonValue({ depthSize: 'large' }), fc.constantFrom(undefined, 2, '\t'), (value, space) => {
      const text = JSON.stringify(value, null, space)
      assert.deepEqual(parse(text), JSON.parse(text))
      const plain = JSON.parse(text) as JsonValue
      assert.equal(finishNow(writeJsonSteps(plain)), JSON.stringify(plain))
    }),
    { numRuns: 300 },
  )
})

test('refuses what JSON.parse refuses', () => {
  const pieces = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '"a"',
    '"\\',
    '1',
    '-',
    '0',
    '1.',
    'e5',
    'true',
    'nul',
    ' ',
    '\u0001',
    '"é',
  )
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (parts) => {
      const text = parts.join('')
      let expected: unknown
      try {
        expected = JSON.parse(text)
      } catch {
        assert.ok(isRefused(text), text)
        return
      }
      assert.deepEqual(parse(text), expected)
    }),
    { numRuns: 2000 },
  )
})

test('long strings keep every character, wherever a chunk ends', () => {
  for (const unit of ['x', 'é', '😀', '\\', '"', '\n', 'a\ud83d', '\u2028']) {
    for (const shift of [0, 1, 3]) {
      const text = '-'.repeat(shift) + unit.repeat(300_000)
      assert.deepEqual(parse(JSON.stringify({ [unit]: text })), { [unit]: text })
      assert.equal(finishNow(writeJsonSteps([text])), JSON.stringify([text]))
    }
  }
  const escaped = `"${'\\u00e9'.repeat(200_000)}"`
  assert.equal(parse(escaped), 'é'.repeat(200_000))
  assert.ok(isRefused(escaped.slice(0, -1)) && isRefused(`"${'x'.repeat(600_000)}\u0001"`))
})

test('numbers keep their digits', () => {
  const text = '{"seed":18446744073709551615,"cfg":1.0,"zero":-0,"small":1e-7,"list":[1,2.50]}'
  const read = finishNow(
    readJsonSteps(Buffer.from(text), { readNumber: (source) => parseLosslessJson(source), limits: WIDE }),
  )
  assert.deepEqual(read, parseLosslessJson(text))
  assert.equal(finishNow(writeJsonSteps(read as JsonValue)), text)
  assert.equal(stringifyLosslessJson(read as JsonValue), text)
})

test('a member called __proto__ is an ordinary member', () => {
  const read = parse('{"__proto__":{"a":1},"b":2}') as object
  assert.deepEqual(Object.keys(read), ['__proto__', 'b'])
  assert.equal(Object.getPrototypeOf(read), Object.prototype)
  assert.equal(finishNow(writeJsonSteps(read as JsonValue)), '{"__proto__":{"a":1},"b":2}')
})

const BEYOND: Readonly<Record<JsonFault, string>> = {
  too_deep: '['.repeat(201),
  too_many_values: `[${Array(1001).fill(1).join()}]`,
  too_many_members: `{${Array.from({ length: 101 }, (_, index) => `"${index}":1`).join()}}`,
  too_many_digits: '1'.repeat(100_001),
  too_long_name: `{"${'x'.repeat(65_540)}":1}`,
  too_much_space: ' '.repeat(1_048_577),
}

test('every limit is enforced before the end of the text', () => {
  const limits = { ...WIDE, maxValues: 1000, maxMembers: 100 }
  for (const [fault, text] of Object.entries(BEYOND)) {
    assert.throws(
      () => parse(text, limits),
      (error) => error instanceof JsonLimitError && error.fault === fault,
      fault,
    )
  }
})

test('a large text is read and written in many steps, also when it is one value', () => {
  const keys = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`k${index}`, index]))
  for (const value of [keys, Array(20_000).fill('x'), 'x'.repeat(3_000_000), { a: { b: 'é'.repeat(2_000_000) } }]) {
    const bytes = Buffer.from(JSON.stringify(value))
    assert.ok(countSteps(readJsonSteps(bytes, { readNumber: Number, limits: WIDE })) >= 10)
    assert.ok(countSteps(writeJsonSteps(value)) >= 8)
  }
})
