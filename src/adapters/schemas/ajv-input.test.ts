import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JsonRecord } from '../../domain/models/catalog/model.ts'
import { createCompileSchema } from './ajv-input.ts'

const compile = createCompileSchema()

function failuresOf(properties: JsonRecord, input: JsonRecord) {
  return compile({ type: 'object', additionalProperties: false, properties })(input)
}

const WORDS: [what: string, schema: JsonRecord, value: unknown, type: string, ctx?: JsonRecord][] = [
  ['a minimum', { type: 'number', minimum: 8 }, 7, 'greater_than_equal', { limit_value: 8 }],
  [
    'an exclusive minimum as 3.0 writes it',
    { type: 'number', minimum: 8, exclusiveMinimum: true },
    8,
    'greater_than',
    { limit_value: 8 },
  ],
  ['a maximum', { type: 'number', maximum: 8 }, 9, 'less_than_equal', { limit_value: 8 }],
  ['an exclusive maximum', { type: 'number', exclusiveMaximum: 8 }, 8, 'less_than', { limit_value: 8 }],
  ['a step', { type: 'integer', multipleOf: 32 }, 33, 'multiple_of', { multiple_of: 32 }],
  ['a choice', { enum: ['a', 'b'] }, 'c', 'one_of', { expected: ['a', 'b'] }],
  ['too few', { type: 'array', minItems: 1 }, [], 'sequence_too_short', { limit_value: 1 }],
  ['too many letters', { type: 'string', maxLength: 2 }, 'abc', 'sequence_too_long', { limit_value: 2 }],
  ['a pattern', { type: 'string', pattern: '^x' }, 'y', 'value_error'],
  ['an address', { type: 'string', format: 'uri' }, 'no address', 'value_error'],
  ['a type', { type: 'string' }, 5, 'value_error'],
]
for (const [what, schema, value, type, ctx] of WORDS) {
  test(`${what} has its error type`, () => {
    const [failure, ...others] = failuresOf({ field: schema }, { field: value } as JsonRecord)
    assert.deepEqual(others, [])
    assert.deepEqual([failure.loc, failure.type, failure.ctx, failure.input], [['body', 'field'], type, ctx, value])
  })
}

test('null is allowed where the schema says so, with and without a type', () => {
  const properties: JsonRecord = {
    a: { type: 'string', nullable: true },
    b: { enum: ['x'], nullable: true },
    c: { type: 'string', enum: ['x'], nullable: true },
  }
  assert.deepEqual(failuresOf(properties, { a: null, b: null, c: null }), [])
})

test('an unknown field is named, and a large value is not repeated in the error', () => {
  const [failure] = failuresOf({}, { surprise: 'x'.repeat(5000) })
  assert.deepEqual([failure.loc, failure.type, 'input' in failure], [['body', 'surprise'], 'value_error', false])
})

test('of failed alternatives the errors of the nearest one are reported', () => {
  const properties: JsonRecord = {
    image: {
      oneOf: [{ type: 'string' }, { type: 'object', required: ['url'], properties: { url: { type: 'string' } } }],
    },
  }
  const failures = failuresOf(properties, { image: { uri: 'x' } })
  assert.deepEqual(
    failures.map(({ loc, type }) => [loc.join('.'), type]),
    [['body.image.url', 'missing']],
  )
})
