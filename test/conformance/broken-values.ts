/** Values that violate exactly one rule of a schema, each with the name of the rule. */
import type { Schema, ServedDocument } from './served-document.ts'

export interface Broken {
  readonly what: string
  readonly value: unknown
}

const WRONG: Readonly<Record<string, unknown>> = {
  string: 'text',
  integer: 7,
  number: 1.5,
  boolean: true,
  array: ['item'],
  object: { member: 1 },
  null: null,
}
const DEEP = 3
const LIST_BOUND = 5000

/** Every single violation that can be made of a valid value; only those that the schema really forbids. */
export function breakValue(
  document: Pick<ServedDocument, 'resolve' | 'faultOf'>,
  schema: Schema,
  value: unknown,
): readonly Broken[] {
  return candidates(document, schema, { value, path: '', depth: 0 }).filter(
    (one) => document.faultOf(schema, one.value) !== null,
  )
}

interface Spot {
  readonly value: unknown
  readonly path: string
  readonly depth: number
}

function candidates(document: Pick<ServedDocument, 'resolve'>, given: Schema, { value, path, depth }: Spot): Broken[] {
  const schema = document.resolve(given)
  const at = path === '' ? 'the value' : path
  const found: Broken[] = []
  const add = (what: string, wrong: unknown) => found.push({ what: `${at}: ${what}`, value: wrong })
  for (const [type, wrong] of Object.entries(WRONG)) add(`a ${type}`, wrong)
  addScalars(schema, value, add)
  if (Array.isArray(value)) addLists(schema, value, add)
  if (depth < DEEP && isRecord(value)) {
    addMembers(schema, value, add)
    found.push(...inside(document, schema, { value, path, depth }))
  }
  return found
}

type Add = (what: string, wrong: unknown) => void

function addScalars(schema: Schema, value: unknown, add: Add): void {
  if (schema['enum'] !== undefined || schema['const'] !== undefined) add('an unknown word', 'no-such-word')
  if (typeof schema['minimum'] === 'number') add('below the minimum', schema['minimum'] - 1)
  if (typeof schema['maximum'] === 'number') add('above the maximum', schema['maximum'] + 1)
  if (typeof schema['minLength'] === 'number') add('too short', 'x'.repeat(Math.max(0, schema['minLength'] - 1)))
  if (typeof schema['maxLength'] === 'number') add('too long', 'x'.repeat(schema['maxLength'] + 1))
  if (schema['pattern'] !== undefined || schema['format'] !== undefined) {
    add('another form', 'not of this form!')
    if (typeof value === 'string') add('a form with an end', `${value}\u0001`)
  }
}

function addLists(schema: Schema, value: readonly unknown[], add: Add): void {
  if (typeof schema['minItems'] === 'number') add('too few items', value.slice(0, schema['minItems'] - 1))
  if (typeof schema['maxItems'] === 'number' && schema['maxItems'] < LIST_BOUND) {
    add(
      'too many items',
      Array.from({ length: schema['maxItems'] + 1 }, () => value[0] ?? 'x'),
    )
  }
  for (const [type, wrong] of Object.entries(WRONG)) add(`a ${type} among its items`, [...value, wrong])
}

function addMembers(schema: Schema, value: Readonly<Record<string, unknown>>, add: Add): void {
  for (const name of (schema['required'] ?? []) as readonly string[]) {
    const { [name]: _, ...rest } = value
    add(`without ${name}`, rest)
  }
  if (schema['additionalProperties'] === false) add('an unknown member', { ...value, no_such_member: 1 })
  if (schema['propertyNames'] !== undefined) add('a member with a wrong name', { ...value, 'no such name!': 'x' })
  if (typeof schema['maxProperties'] === 'number') {
    const many = Array.from({ length: schema['maxProperties'] + 1 }, (_, index) => [`k${index}`, 'x'])
    add('too many members', Object.fromEntries(many))
  }
}

function inside(
  document: Pick<ServedDocument, 'resolve'>,
  schema: Schema,
  { value, path, depth }: Spot & { readonly value: Readonly<Record<string, unknown>> },
): Broken[] {
  const properties = (schema['properties'] ?? {}) as Readonly<Record<string, Schema>>
  const rest = schema['additionalProperties']
  return Object.keys({ ...properties, ...value }).flatMap((name) => {
    const member = properties[name] ?? (typeof rest === 'object' ? (rest as Schema) : null)
    if (member === null) return []
    const spot = { value: value[name], path: path === '' ? name : `${path}.${name}`, depth: depth + 1 }
    return candidates(document, member, spot).map((one) => ({ what: one.what, value: { ...value, [name]: one.value } }))
  })
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
