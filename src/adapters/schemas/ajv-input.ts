/**
 * Input schemas compiled with Ajv, with its errors in the router's terms. Schemas are written in OpenAPI 3.0 style (`nullable`,
 * boolean `exclusiveMinimum`). All failures are reported; where all alternatives fail, those of the nearest one.
 */
import { Ajv, type ErrorObject } from 'ajv'
import { isRecord, type Json, type JsonRecord } from '../../domain/models/catalog/model.ts'
import type { CheckInput, CompileSchema } from '../../domain/models/catalog/model-catalog.ts'
import type { ValidationFailure } from '../../domain/models/router-error.ts'

// An input may hold whole pictures, so errors repeat only short values.
const MAX_ECHO_LENGTH = 1024
const MAX_FAILURES = 100

/** All schemas share one compiler: setting one up costs more than most schemas. */
export function createCompileSchema(): CompileSchema {
  const options = { allErrors: true, strict: false, verbose: true, discriminator: true, formats: FORMATS }
  const ajv = new Ajv(options)
  return function compileSchema(schema) {
    const written = toDraft7(schema) as object
    const validate = ajv.compile(written)
    // Otherwise the compiler would keep the schemas of every reload for ever.
    ajv.removeSchema(written)
    return ((input) => {
      if (validate(input)) return []
      const errors = pickAlternatives(validate.errors ?? [])
      return errors.slice(0, MAX_FAILURES).map((error) => toFailure(error, input))
    }) satisfies CheckInput
  }
}

const FORMATS: Readonly<Record<string, true | ((text: string) => boolean)>> = {
  uri: (text) => URL.canParse(text),
  url: (text) => URL.canParse(text),
  'date-time': (text) => /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text) && !Number.isNaN(Date.parse(text)),
  uuid: (text) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text),
  // Annotations for readers: they restrict nothing.
  binary: true,
  byte: true,
  float: true,
  double: true,
  int32: true,
  int64: true,
  password: true,
}

/** OpenAPI 3.0 marks an exclusive bound and null by flags, which JSON Schema draft 7 does not have. */
function toDraft7(schema: Json): Json {
  if (Array.isArray(schema)) return (schema as readonly Json[]).map(toDraft7)
  if (!isRecord(schema)) return schema
  const copy: Record<string, Json> = {}
  for (const [name, value] of Object.entries(schema)) {
    // Values of these are data, not schemas.
    copy[name] =
      name === 'enum' || name === 'const' || name === 'default' || name === 'example' ? value : toDraft7(value)
  }
  moveExclusive(copy, 'minimum', 'exclusiveMinimum')
  moveExclusive(copy, 'maximum', 'exclusiveMaximum')
  if (copy['nullable'] === true && Array.isArray(copy['enum']) && !copy['enum'].includes(null)) {
    copy['enum'] = [...(copy['enum'] as readonly Json[]), null]
  }
  // Ajv knows `nullable` beside a type only.
  if (copy['nullable'] === undefined || copy['type'] !== undefined) return copy
  const { nullable, ...rest } = copy
  return nullable === true ? { anyOf: [{ type: 'null' }, rest] } : rest
}

function moveExclusive(schema: Record<string, Json>, bound: string, flag: string): void {
  if (typeof schema[flag] !== 'boolean') return
  const isExclusive = schema[flag]
  delete schema[flag]
  if (!isExclusive || schema[bound] === undefined) return
  schema[flag] = schema[bound]
  delete schema[bound]
}

const ALTERNATIVES = new Set(['anyOf', 'oneOf', 'if'])

/** Of every failed choice only the errors of the nearest branch are kept; the choice's own error adds nothing to them. */
function pickAlternatives(errors: readonly ErrorObject[]): ErrorObject[] {
  let kept = [...errors]
  for (const choice of errors.filter(({ keyword }) => ALTERNATIVES.has(keyword))) {
    const branches = groupByBranch(kept, `${choice.schemaPath}/`)
    if (branches.length === 0) continue
    const nearest = branches.toSorted((a, b) => rank(a) - rank(b))[0]
    const dropped = new Set([choice, ...branches.flat().filter((error) => !nearest.includes(error))])
    kept = kept.filter((error) => !dropped.has(error))
  }
  return kept
}

function groupByBranch(errors: readonly ErrorObject[], prefix: string): ErrorObject[][] {
  const branches = new Map<string, ErrorObject[]>()
  for (const error of errors) {
    if (!error.schemaPath.startsWith(prefix)) continue
    const branch = error.schemaPath.slice(prefix.length).split('/', 1)[0]
    branches.set(branch, [...(branches.get(branch) ?? []), error])
  }
  return [...branches.values()]
}

/** A branch of another type altogether is further away than one with a wrong value somewhere inside. */
function rank(errors: readonly ErrorObject[]): number {
  return errors.reduce((sum, { keyword }) => sum + (keyword === 'type' ? 10 : 1), 0)
}

interface Words {
  readonly type: string
  readonly ctx?: JsonRecord
}

type Params = Readonly<Record<string, Json>>

const WORDS: Readonly<Record<string, (params: Params) => Words>> = {
  required: () => ({ type: 'missing' }),
  enum: ({ allowedValues }) => ({ type: 'one_of', ctx: { expected: allowedValues } }),
  const: ({ allowedValue }) => ({ type: 'one_of', ctx: { expected: [allowedValue] } }),
  discriminator: () => ({ type: 'one_of' }),
  minimum: ({ limit }) => ({ type: 'greater_than_equal', ctx: { limit_value: limit } }),
  exclusiveMinimum: ({ limit }) => ({ type: 'greater_than', ctx: { limit_value: limit } }),
  maximum: ({ limit }) => ({ type: 'less_than_equal', ctx: { limit_value: limit } }),
  exclusiveMaximum: ({ limit }) => ({ type: 'less_than', ctx: { limit_value: limit } }),
  minItems: ({ limit }) => ({ type: 'sequence_too_short', ctx: { limit_value: limit } }),
  maxItems: ({ limit }) => ({ type: 'sequence_too_long', ctx: { limit_value: limit } }),
  minLength: ({ limit }) => ({ type: 'sequence_too_short', ctx: { limit_value: limit } }),
  maxLength: ({ limit }) => ({ type: 'sequence_too_long', ctx: { limit_value: limit } }),
  multipleOf: ({ multipleOf }) => ({ type: 'multiple_of', ctx: { multiple_of: multipleOf } }),
}

function toFailure(error: ErrorObject, input: JsonRecord): ValidationFailure {
  const params = error.params as Params
  const words = WORDS[error.keyword]?.(params) ?? { type: 'value_error' }
  const own = params['missingProperty'] ?? params['additionalProperty']
  const loc = ['body', ...toLoc(error.instancePath, input), ...(typeof own === 'string' ? [own] : [])]
  const failure = { loc, msg: toMessage(error, params), ...words }
  const value = error.keyword === 'required' ? undefined : toEcho(error, params)
  return value === undefined ? failure : { ...failure, input: value }
}

function toMessage({ keyword, message = 'is not valid' }: ErrorObject, params: Params): string {
  if (keyword === 'required') return 'this field is required'
  if (keyword === 'additionalProperties') return 'this field is not known'
  if (keyword === 'enum') return `must be one of ${JSON.stringify(params['allowedValues'])}`
  return message
}

function toEcho({ data, keyword }: ErrorObject, params: Params): Json | undefined {
  const name = params['additionalProperty']
  const value =
    keyword === 'additionalProperties' && typeof name === 'string' ? (data as JsonRecord)[name] : (data as Json)
  const text = JSON.stringify(value)
  return text !== undefined && text.length <= MAX_ECHO_LENGTH ? value : undefined
}

/** A JSON pointer as names and indexes; digits are an index only where the document has a list. */
function toLoc(pointer: string, input: JsonRecord): (string | number)[] {
  let at: Json = input
  return pointer
    .split('/')
    .slice(1)
    .map((escaped) => {
      const name = escaped.replaceAll('~1', '/').replaceAll('~0', '~')
      const isIndex = Array.isArray(at)
      at = isIndex ? (at as readonly Json[])[Number(name)] : isRecord(at) ? at[name] : null
      return isIndex ? Number(name) : name
    })
}
