import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileBody } from './compile-model.ts'
import type { BodyRules } from './rule-types.ts'

function write(rules: BodyRules, text: string, knownFields: ReadonlySet<string> | null = null): string {
  const from = { body: Buffer.from(text), input: JSON.parse(text), values: { model: 'm-1' }, knownFields }
  return compileBody(rules).toBytes(from).toString('utf8')
}

const ODD = '{ "seed" : 18446744073709551615,\n "weight": 1.0, "text": "\\u00e9" }'

test('what no rule touches leaves byte for byte', () => {
  assert.equal(write({}, ODD), ODD)
  assert.equal(write({ drop: ['nothing'], strip: [{ field: 'mask', unless: 'image' }] }, ODD), ODD)
  assert.equal(write({ inject: { seed: 1 } }, ODD), ODD)
  assert.equal(write({ force: { stream: false } }, '{"stream":false , "a":1}'), '{"stream":false , "a":1}')
})

test('a field that is only added stands before the bytes of the caller', () => {
  assert.equal(write({ inject: { model: '{model}' } }, ODD), `{"model":"m-1",${ODD.slice(1)}`)
  assert.equal(write({ inject: { model: '{model}', n: 1 } }, ' { } '), ' {"model":"m-1","n":1 } ')
})

test('a null is filled like a field that is left out, and every digit survives', () => {
  const text = '{"model":null,"seed":18446744073709551615,"weight":1.0}'
  assert.equal(
    write({ inject: { model: '{model}' } }, text),
    '{"model":"m-1","seed":18446744073709551615,"weight":1.0}',
  )
})

const CASES: [string, BodyRules, string, string][] = [
  ['force replaces', { force: { stream: false } }, '{"stream":true,"a":1}', '{"stream":false,"a":1}'],
  ['force adds', { force: { stream: false } }, '{"a":1.0}', '{"a":1.0,"stream":false}'],
  ['force and inject add', { force: { a: 1 }, inject: { b: '{model}' } }, '{"c":1.0}', '{"b":"m-1","c":1.0,"a":1}'],
  ['force and inject add to nothing', { force: { a: 1 }, inject: { b: 2 } }, ' { } ', ' {"b":2, "a":1} '],
  ['force adds to nothing', { force: { a: 1 } }, '{}', '{"a":1}'],
  ['what is forced is not injected', { force: { a: 1 }, inject: { a: 2 } }, '{"c":1.0}', '{"c":1.0,"a":1}'],
  ['force below', { force: { 'a.b': 1 } }, '{"c":1.0}', '{"c":1.0,"a":{"b":1}}'],
  ['force below what is there', { force: { 'a.b': 1 } }, '{"a":{"c":1.0}}', '{"a":{"c":1.0,"b":1}}'],
  ['force below twice', { force: { 'a.b': 1, 'a.c': 2 } }, '{"d":1}', '{"d":1,"a":{"b":1,"c":2}}'],
  ['force replaces a null', { force: { a: 1 } }, '{"a":null}', '{"a":1}'],
  ['drop', { drop: ['a'] }, '{"a":1,"b":2}', '{"b":2}'],
  ['rename', { rename: { a: 'z' } }, '{"a":1,"b":2}', '{"b":2,"z":1}'],
  ['strip without the other field', { strip: [{ field: 'mask', unless: 'image' }] }, '{"mask":"m","p":1}', '{"p":1}'],
  [
    'strip with it',
    { strip: [{ field: 'mask', unless: 'image' }] },
    '{"mask":"m","image":"i"}',
    '{"mask":"m","image":"i"}',
  ],
  [
    'inject below',
    { inject: { 'parameters.n': 1 } },
    '{"parameters":{"size":"s"}}',
    '{"parameters":{"size":"s","n":1}}',
  ],
  ['inject below nothing', { inject: { 'parameters.n': 1 } }, '{"a":1}', '{"a":1,"parameters":{"n":1}}'],
  [
    'inject leaves what is there',
    { inject: { 'parameters.n': 1 } },
    '{"parameters":{"n":4}}',
    '{"parameters":{"n":4}}',
  ],
]

for (const [name, rules, text, expected] of CASES) {
  test(name, () => assert.equal(write(rules, text), expected))
}

test('unknown fields are left out where the rules say so', () => {
  assert.equal(write({ drop_unknown: true }, '{"a":1,"x":2}', new Set(['a'])), '{"a":1}')
  assert.equal(write({ drop_unknown: true }, '{"a": 1}', new Set(['a'])), '{"a": 1}')
})
