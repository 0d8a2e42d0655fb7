/**
 * A JSON Schema as fields: texts, numbers with bounds, switches, choices. Whatever it cannot draw is a field of JSON, so that nothing
 * is out of reach. Values are JSON text. Pure.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { type Field, type FieldKind, readField } from './workflow-fields.ts'

export interface SchemaField {
  readonly name: string
  readonly field: Field
  readonly isRequired: boolean
  /** JSON text that the service takes when nothing is said; null: none is known. */
  readonly preset: string | null
}

const LONG_TEXT = /prompt|text|description|message|content/i
const SEED = /seed/i

export function toSchemaFields(schema: JsonValue): readonly SchemaField[] {
  const { properties, required, example } = isJsonObject(schema) ? schema : {}
  const wanted = Array.isArray(required) ? required : []
  const examples = isJsonObject(example) ? example : {}
  const fields = Object.entries(isJsonObject(properties) ? properties : {}).map(([name, property]) =>
    toField(name, isJsonObject(property) ? property : {}, wanted.includes(name), examples[name]),
  )
  return fields.toSorted((a, b) => Number(b.isRequired) - Number(a.isRequired))
}

function toField(name: string, property: JsonObject, isRequired: boolean, example: JsonValue | undefined): SchemaField {
  const kind = kindOf(name, property)
  const preset = property['default']
  const first = isRequired ? (example ?? preset) : preset
  const text = (value: JsonValue | undefined) => (value === undefined ? null : stringifyLosslessJson(value))
  return {
    name,
    isRequired,
    preset: text(preset),
    field: {
      node: '',
      input: name,
      kind,
      valueText: text(first) ?? emptyText(kind),
      choices: Array.isArray(property['enum']) ? property['enum'].map(String) : [],
      min: text(property['minimum']),
      max: text(property['maximum']),
      tooltip: typeof property['description'] === 'string' ? property['description'] : null,
      media: null,
      isSeed: kind === 'integer' && SEED.test(name),
    },
  }
}

function kindOf(name: string, property: JsonObject): FieldKind {
  const { type, enum: choices, maxLength } = property
  const only = Array.isArray(type) ? type.filter((word) => word !== 'null') : [type]
  if (Array.isArray(choices) && choices.every((choice) => typeof choice === 'string')) return 'choice'
  if (only.length !== 1) return 'json'
  if (only[0] === 'string')
    return LONG_TEXT.test(name) && (typeof maxLength !== 'number' || maxLength > 100) ? 'multiline' : 'text'
  if (only[0] === 'integer') return 'integer'
  if (only[0] === 'number') return 'number'
  return only[0] === 'boolean' ? 'switch' : 'json'
}

/** What an untouched field without a preset holds: nothing that is sent. */
function emptyText(kind: FieldKind): string {
  return kind === 'switch' ? 'false' : kind === 'integer' || kind === 'number' || kind === 'json' ? '' : '""'
}

export interface SchemaReading {
  /** The input as JSON text. */
  readonly text: string
  readonly problems: ReadonlyMap<string, string>
}

/** Fields that were left empty and need not be filled are not sent. */
export function readSchemaFields(fields: readonly SchemaField[], typed: ReadonlyMap<string, string>): SchemaReading {
  const problems = new Map<string, string>()
  const pairs: string[] = []
  for (const { name, field, isRequired, preset } of fields) {
    const text = typed.get(name)
    if (text === undefined) {
      const isKnown = field.valueText !== emptyText(field.kind) || field.kind === 'switch'
      if (isRequired && isKnown) pairs.push(`${JSON.stringify(name)}:${field.valueText}`)
      else if (isRequired) problems.set(name, 'needed')
      continue
    }
    if (text.trim() === '' && !isRequired) continue
    if (text.trim() === '') {
      problems.set(name, 'needed')
      continue
    }
    const read = readField(field, text)
    if ('problem' in read) problems.set(name, read.problem)
    else if (isRequired || read.valueText !== preset) pairs.push(`${JSON.stringify(name)}:${read.valueText}`)
  }
  return { text: `{${pairs.join(',')}}`, problems }
}
