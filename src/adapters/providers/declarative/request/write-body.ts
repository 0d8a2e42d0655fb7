/**
 * The caller's input as the provider gets it. An input that no rule changes is sent byte for byte; fields that are only added are
 * put in front of the caller's bytes. Otherwise the document is parsed and written again, with every digit kept.
 */
import {
  isJsonObject,
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../../../lib/json/lossless-json.ts'
import type { BodyRules } from '../rules/rule-types.ts'
import { compileJsonTemplate, type TemplateValues } from '../rules/text-template.ts'

interface BodyInput {
  readonly body: Buffer
  readonly input: Readonly<Record<string, unknown>>
  readonly values: TemplateValues
  /** The fields that the schema knows; null: no schema. */
  readonly knownFields: ReadonlySet<string> | null
}

export interface BodyWriter {
  toBytes(from: BodyInput): Buffer
  /** For forms: the fields after the rules. */
  toFields(from: BodyInput): JsonObject
}

const OPEN_BRACE = 0x7b

export function compileBody(rules: BodyRules = {}): BodyWriter {
  const inject = compileFields(rules.inject)
  const force = compileFields(rules.force)
  const isUntouched = ({ input, knownFields }: BodyInput) =>
    (rules.drop ?? []).every((field) => !(field in input)) &&
    Object.keys(rules.rename ?? {}).every((field) => !(field in input)) &&
    (rules.strip ?? []).every(({ field }) => !(field in input)) &&
    (!rules.drop_unknown || knownFields === null || Object.keys(input).every((field) => knownFields.has(field)))

  function toFields({ body, values, knownFields }: BodyInput): JsonObject {
    const fields = parseLosslessJson(body.toString('utf8'))
    if (!isJsonObject(fields)) throw new Error('a model is only ever given an object')
    dropFields(fields, rules, knownFields)
    for (const [path, write] of inject) setAt(fields, path, write(values) as JsonValue, { onlyIfMissing: true })
    for (const [path, write] of force) setAt(fields, path, write(values) as JsonValue, { onlyIfMissing: false })
    return fields
  }

  function toBytes(from: BodyInput): Buffer {
    if (isUntouched(from) && force.every(([path, write]) => from.input[path[0]] === write(from.values))) {
      const missing = inject.filter(([path]) => path.length > 1 || isMissing(from.input[path[0]]))
      if (missing.length === 0) return from.body
      if (missing.every(([path]) => path.length === 1 && !(path[0] in from.input))) {
        return spliceFields(
          from.body,
          missing.map(([path, write]) => [path[0], write(from.values)]),
        )
      }
    }
    return Buffer.from(stringifyLosslessJson(toFields(from)))
  }

  return { toBytes, toFields }
}

type FieldWriter = readonly [path: readonly string[], write: (values: TemplateValues) => unknown]

function compileFields(fields: Readonly<Record<string, unknown>> = {}): FieldWriter[] {
  return Object.entries(fields).map(([name, value]) => [name.split('.'), compileJsonTemplate(value)])
}

function isMissing(value: unknown): boolean {
  return value === undefined || value === null
}

function dropFields(fields: JsonObject, rules: BodyRules, knownFields: ReadonlySet<string> | null): void {
  for (const { field, unless } of rules.strip ?? []) if (isMissing(fields[unless])) delete fields[field]
  for (const field of rules.drop ?? []) delete fields[field]
  if (rules.drop_unknown && knownFields !== null) {
    for (const field of Object.keys(fields)) if (!knownFields.has(field)) delete fields[field]
  }
  for (const [from, to] of Object.entries(rules.rename ?? {})) {
    if (!Object.hasOwn(fields, from)) continue
    fields[to] = fields[from]
    delete fields[from]
  }
}

function setAt(
  fields: JsonObject,
  path: readonly string[],
  value: JsonValue,
  { onlyIfMissing }: { readonly onlyIfMissing: boolean },
): void {
  let holder = fields
  for (const name of path.slice(0, -1)) {
    const next = holder[name]
    if (isJsonObject(next)) holder = next
    else if (isMissing(next)) {
      const made: JsonObject = {}
      holder[name] = made
      holder = made
    } else return
  }
  const last = path[path.length - 1]
  if (!onlyIfMissing || isMissing(holder[last])) holder[last] = value
}

/** `{…}` becomes `{"model":"x",…}`: the caller's bytes stay as they are. */
function spliceFields(body: Buffer, fields: readonly (readonly [string, unknown])[]): Buffer {
  const start = body.indexOf(OPEN_BRACE) + 1
  const text = fields.map(([name, value]) => `${JSON.stringify(name)}:${JSON.stringify(value)}`).join(',')
  const isEmpty = /^\s*\}/.test(body.toString('latin1', start, start + 64))
  return Buffer.concat([body.subarray(0, start), Buffer.from(isEmpty ? text : `${text},`), body.subarray(start)])
}
