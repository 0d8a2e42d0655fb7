/** Values that a schema allows, its bounds more often than its middle. */
import fc from 'fast-check'
import type { Schema, ServedDocument } from './served-document.ts'

/** Values that mean something to the service under test, by the name of the member or parameter that takes them. */
export type KnownValues = Readonly<Record<string, readonly unknown[]>>

export interface ValueOptions {
  readonly document: Pick<ServedDocument, 'resolve' | 'faultOf'>
  readonly known: KnownValues
  /** Which characters a string without a pattern may hold. */
  readonly unit?: fc.Arbitrary<string>
}

const ANY_TEXT_LENGTH = 40
const ANY_MEMBERS = 3
const DEPTH = 2
/** Made once: they are costly to make. */
const ANY_JSON = fc.jsonValue({ maxDepth: DEPTH })
const ANY_NAME = fc.string({ maxLength: 8 }).filter((name) => name !== '__proto__')
const ANY_CHARACTER = fc.oneof(
  { weight: 5, arbitrary: fc.string({ unit: 'grapheme-ascii', minLength: 1, maxLength: 1 }) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }) },
)

export function validValues(schema: Schema, name: string, options: ValueOptions): fc.Arbitrary<unknown> {
  const known = (options.known[name] ?? []).filter((value) => options.document.faultOf(schema, value) === null)
  const any = anyOf(schema, options)
  if (known.length === 0) return any
  return fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...known) }, { weight: 1, arbitrary: any })
}

function anyOf(given: Schema, options: ValueOptions): fc.Arbitrary<unknown> {
  const schema = options.document.resolve(given)
  if ('const' in schema) return fc.constant(schema['const'])
  if (Array.isArray(schema['enum'])) return fc.constantFrom(...(schema['enum'] as unknown[]))
  const choices = (schema['oneOf'] ?? schema['anyOf']) as readonly Schema[] | undefined
  if (choices !== undefined) {
    const { oneOf: _one, anyOf: _any, ...beside } = schema
    const values = choices.map((choice) => anyOf(merge(beside, options.document.resolve(choice)), options))
    return fc.oneof(...values).filter((value) => options.document.faultOf(given, value) === null)
  }
  if (Array.isArray(schema['allOf'])) {
    const parts = (schema['allOf'] as Schema[]).map((part) => options.document.resolve(part))
    return anyOf(parts.reduce(merge, { ...schema, allOf: undefined }), options)
  }
  const types = [schema['type'] ?? 'any'].flat() as string[]
  const values = fc.oneof(...types.map((type) => ofType(type, schema, options)))
  return 'not' in schema ? values.filter((value) => options.document.faultOf(schema, value) === null) : values
}

function merge(left: Schema, right: Schema): Schema {
  return {
    ...left,
    ...right,
    properties: { ...(left['properties'] as object), ...(right['properties'] as object) },
    required: [...((left['required'] ?? []) as string[]), ...((right['required'] ?? []) as string[])],
  }
}

function ofType(type: string, schema: Schema, options: ValueOptions): fc.Arbitrary<unknown> {
  switch (type) {
    case 'string':
      return text(schema, options)
    case 'integer':
      return integer(schema)
    case 'number':
      return fc.oneof(
        integer(schema),
        fc.double({ noNaN: true, noDefaultInfinity: true, min: low(schema), max: high(schema) }),
      )
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return list(schema, options)
    case 'object':
      return object(schema, options)
    default:
      return ANY_JSON
  }
}

function text(schema: Schema, { unit = ANY_CHARACTER, document }: ValueOptions): fc.Arbitrary<unknown> {
  const { pattern, format } = schema as { pattern?: string; format?: string }
  if (format === 'uuid') return fc.uuid()
  // Whatever is called because of a test is called on this machine.
  if (format === 'uri') return fc.webPath().map((path) => `https://127.0.0.1:9${path}`)
  if (format === 'date-time') {
    const year = (value: number) => new Date(Date.UTC(value, 0))
    return fc.date({ min: year(2000), max: year(2100), noInvalidDate: true }).map((date) => date.toISOString())
  }
  const minLength = (schema['minLength'] ?? 0) as number
  const maxLength = schema['maxLength'] as number | undefined
  if (pattern !== undefined && unit === ANY_CHARACTER) {
    // A pattern may match a part of the text; what does not fit the lengths beside it is drawn again.
    const whole = fc.stringMatching(new RegExp(pattern, 'u'))
    return whole.filter((value) => document.faultOf(schema, value) === null)
  }
  const usual = fc.string({
    unit,
    minLength,
    maxLength: Math.min(maxLength ?? ANY_TEXT_LENGTH, minLength + ANY_TEXT_LENGTH),
  })
  if (maxLength === undefined) return usual
  const longest = fc.string({ unit, minLength: maxLength, maxLength })
  const texts = fc.oneof({ weight: 6, arbitrary: usual }, { weight: 1, arbitrary: longest })
  return pattern === undefined ? texts : texts.filter((value) => document.faultOf(schema, value) === null)
}

function low(schema: Schema): number {
  return (schema['minimum'] ?? Number.MIN_SAFE_INTEGER) as number
}

function high(schema: Schema): number {
  return (schema['maximum'] ?? Number.MAX_SAFE_INTEGER) as number
}

function integer(schema: Schema): fc.Arbitrary<number> {
  const step = (schema['multipleOf'] ?? 1) as number
  if (step !== 1) {
    const [first, last] = [Math.ceil(low(schema) / step), Math.floor(high(schema) / step)]
    return fc.integer({ min: first, max: last }).map((times) => times * step)
  }
  const [min, max] = [low(schema), high(schema)]
  const small = Math.min(max, Math.max(min, 0) + 20)
  return fc.oneof(
    fc.integer({ min, max }),
    fc.integer({ min: Math.max(min, small - 20), max: small }),
    fc.constantFrom(min, max),
  )
}

function list(schema: Schema, options: ValueOptions): fc.Arbitrary<unknown[]> {
  const items = validValues((schema['items'] ?? {}) as Schema, '', options)
  const minLength = (schema['minItems'] ?? 0) as number
  const maxLength = Math.min((schema['maxItems'] ?? ANY_MEMBERS) as number, minLength + ANY_MEMBERS)
  return schema['uniqueItems'] === true
    ? fc.uniqueArray(items, { minLength, maxLength, selector: (item) => JSON.stringify(item) })
    : fc.array(items, { minLength, maxLength })
}

function object(schema: Schema, options: ValueOptions): fc.Arbitrary<object> {
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, Schema>>
  const required = ((schema['required'] ?? []) as readonly string[]).filter((name) => name in properties)
  const declared = fc.record(
    Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, validValues(one, name, options)])),
    { requiredKeys: required },
  )
  return fc.tuple(declared, furtherMembers(schema, options)).map(([own, more]) => ({
    ...Object.fromEntries(Object.entries(more).filter(([name]) => !(name in properties))),
    ...own,
  }))
}

function furtherMembers(schema: Schema, options: ValueOptions): fc.Arbitrary<object> {
  const rest = schema['additionalProperties']
  if (rest === false) return fc.constant({})
  const names = schema['propertyNames'] as Schema | undefined
  const name = names === undefined ? ANY_NAME : (text(names, options) as fc.Arbitrary<string>)
  const value = typeof rest === 'object' ? validValues(rest as Schema, '', options) : ANY_JSON
  const maxKeys = Math.min((schema['maxProperties'] ?? ANY_MEMBERS) as number, ANY_MEMBERS)
  return fc.dictionary(name, value, { maxKeys, noNullPrototype: true })
}
