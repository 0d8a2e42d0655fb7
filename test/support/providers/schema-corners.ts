/**
 * Edge cases of a model's input: for every field of its schema the values at its bounds, and values outside of them. Those that
 * the model's own validation accepts are used as inputs; the others must be refused.
 */

import { isRecord, type Json, type JsonRecord, type Model } from '../../../src/domain/models/catalog/model.ts'
import type { CheckInput } from '../../../src/domain/models/catalog/model-catalog.ts'

/** undefined: the field is left out. */
type Corner = Json | undefined

const STRAY: readonly Corner[] = [
  undefined,
  null,
  'auto',
  '',
  '5',
  '-1',
  '7s',
  'NaN',
  -1,
  0,
  1,
  0.5,
  7.25,
  1e12,
  true,
  [],
  {},
]
const SIZES = ['1024x1024', '2048x2048', '832*480', '1280*720', '1920*1080', '999*999']

/** Every input that differs from the example in one field or in two of those that matter to the price. */
export function* cornersOf(model: Model, priced: readonly string[], check: CheckInput): Generator<JsonRecord> {
  const { schema, example } = model.input
  const base = { ...example }
  const fields = schema === null ? priced : fieldsOf(schema, '')
  const isInput = (input: JsonRecord) => check(input).length === 0
  for (const field of fields) {
    for (const value of valuesAt(schema, field)) {
      const input = withValue(base, field.split('.'), value)
      if (isInput(input)) yield input
    }
  }
  for (const [index, first] of priced.entries()) {
    for (const second of priced.slice(index + 1)) {
      for (const a of valuesAt(schema, first)) {
        const half = withValue(base, first.split('.'), a)
        for (const b of valuesAt(schema, second)) {
          const input = withValue(half, second.split('.'), b)
          if (isInput(input)) yield input
        }
      }
    }
  }
}

function fieldsOf(schema: Json, prefix: string): string[] {
  const properties = isRecord(schema) && isRecord(schema['properties']) ? schema['properties'] : {}
  return Object.entries(properties).flatMap(([name, inner]) => {
    const field = prefix === '' ? name : `${prefix}.${name}`
    return [field, ...fieldsOf(inner, field)]
  })
}

function valuesAt(schema: Json, field: string): readonly Corner[] {
  let at: Json | undefined = schema
  for (const name of field.split('.')) {
    const properties: Json | undefined = isRecord(at) ? at['properties'] : undefined
    at = isRecord(properties) ? properties[name] : undefined
  }
  return [...STRAY, ...SIZES, ...edgesOf(at ?? {})]
}

function edgesOf(schema: Json): readonly Corner[] {
  if (!isRecord(schema)) return []
  const choices = [schema['anyOf'], schema['oneOf'], schema['allOf']].flatMap((list) =>
    Array.isArray(list) ? (list as readonly Json[]).flatMap(edgesOf) : [],
  )
  const listed = Array.isArray(schema['enum']) ? (schema['enum'] as readonly Json[]) : []
  const bounds = [schema['minimum'], schema['maximum']].flatMap((bound) =>
    typeof bound === 'number' ? [bound - 1, bound, bound + 0.5, bound + 1] : [],
  )
  const texts = ['minLength', 'maxLength'].flatMap((name) => {
    const length = schema[name]
    return typeof length === 'number' && length <= 200_000 ? ['x'.repeat(length)] : []
  })
  const stated = schema['default'] === undefined ? [] : [schema['default']]
  return [...choices, ...listed, ...bounds, ...texts, ...stated]
}

function withValue(input: JsonRecord, [name, ...rest]: readonly string[], value: Corner): JsonRecord {
  const inner = rest.length === 0 ? value : withValue(isRecord(input[name]) ? input[name] : {}, rest, value)
  const { [name]: _before, ...others } = input
  return inner === undefined ? others : { ...others, [name]: inner }
}
