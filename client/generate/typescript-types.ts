/** Schemas as types of TypeScript. What a type cannot tell (limits, patterns, which members go together) the service checks. */
import { isBytes, isRule, nameOf, type Schema } from '../../lib/openapi/operations.ts'

const PRIMITIVES: Readonly<Record<string, string>> = {
  string: 'string',
  integer: 'number',
  number: 'number',
  boolean: 'boolean',
  null: 'null',
}

/** A named type, exported. */
export function toDeclaration(name: string, schema: Schema): string {
  const doc = toDoc(schema.description, '')
  if (isPlainObject(schema)) return `${doc}export interface ${name} ${toMembers(schema, '')}\n`
  return `${doc}export type ${name} = ${toType(schema, '')}\n`
}

function isPlainObject(schema: Schema): boolean {
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])]
  return (
    schema.$ref === undefined && schema.type === 'object' && schema.properties !== undefined && choices.every(isRule)
  )
}

export function toType(schema: Schema, indent: string): string {
  const parts: string[] = []
  const own = toOwnType(schema, indent)
  if (own !== null) parts.push(own)
  for (const each of schema.allOf ?? []) if (!isRule(each)) parts.push(parenthesize(toType(each, indent)))
  for (const choices of [schema.anyOf, schema.oneOf]) {
    const told = (choices ?? []).filter((each) => !isRule(each) && !isEmptyObject(each, own))
    if (told.length > 0) parts.push(parenthesize(toUnion(told.map((each) => toType(each, indent)))))
  }
  return parts.length === 0 ? 'unknown' : parts.join(' & ')
}

/** A form beside members of its own that only says which values of them go together. */
function isEmptyObject(choice: Schema, own: string | null): boolean {
  return own !== null && choice.type === undefined && choice.$ref === undefined
}

/** null: the schema is only what it is composed of. */
function toOwnType(schema: Schema, indent: string): string | null {
  const { $ref, type, enum: values, const: constant } = schema
  if ($ref !== undefined) return isNarrowed(schema) ? `NonNullable<${nameOf($ref)}>` : nameOf($ref)
  if (constant !== undefined) return toLiteral(constant)
  if (values !== undefined) return toUnion(values.map(toLiteral))
  if (type === undefined) return schema.properties === undefined ? null : toMembers(schema, indent)
  const types = typeof type === 'string' ? [type] : type
  return toUnion(types.map((each) => toTyped(each, schema, indent)))
}

/** The same thing, which may be null elsewhere, and is not here. */
function isNarrowed({ type }: Schema): boolean {
  return type !== undefined && !(Array.isArray(type) ? type : [type]).includes('null')
}

function toTyped(type: string, schema: Schema, indent: string): string {
  if (type === 'object') return toObject(schema, indent)
  if (type === 'array') return `readonly ${parenthesize(toType(schema.items ?? {}, indent))}[]`
  if (isBytes(schema)) return 'Blob'
  return PRIMITIVES[type] ?? 'unknown'
}

function toObject(schema: Schema, indent: string): string {
  if (schema.properties !== undefined) return toMembers(schema, indent)
  const { additionalProperties } = schema
  const value = typeof additionalProperties === 'object' ? toType(additionalProperties, indent) : 'unknown'
  return `Readonly<Record<string, ${value}>>`
}

function toMembers({ properties = {}, required = [], additionalProperties }: Schema, indent: string): string {
  const inner = `${indent}  `
  const lines = Object.entries(properties).map(([name, member]) => {
    const mark = required.includes(name) ? '' : '?'
    return `${toDoc(member.description, inner)}${inner}readonly ${toKey(name)}${mark}: ${toType(member, inner)}\n`
  })
  // Required, and described by what this is composed with.
  const open = additionalProperties === true || typeof additionalProperties === 'object'
  const rest = open ? `${inner}readonly [name: string]: unknown\n` : ''
  return lines.length === 0 && rest === '' ? '{}' : `{\n${lines.join('')}${rest}${indent}}`
}

export function toDoc(text: string | undefined, indent: string): string {
  if (text === undefined || text === '') return ''
  const lines = text.replaceAll('*/', '*\\/').split('\n')
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join('\n')}\n${indent} */\n`
}

function toUnion(types: readonly string[]): string {
  return [...new Set(types)].join(' | ')
}

function parenthesize(type: string): string {
  return / [|&] /.test(type) && !/^\w+<[^>]*>$/.test(type) ? `(${type})` : type
}

function toLiteral(value: unknown): string {
  if (typeof value === 'string')
    return `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'").replaceAll('\n', '\\n')}'`
  return value === null || ['number', 'boolean'].includes(typeof value) ? String(value) : 'unknown'
}

function toKey(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : toLiteral(name)
}
